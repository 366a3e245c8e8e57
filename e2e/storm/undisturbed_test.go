package storm_test

import (
	"context"
	"encoding/json"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/e2e/storm"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

const studyFile = `
name: example
command: [train]
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 1, max: 9}, eta: 3}
search: {method: bohb, seed: 7}
stop: {trials: 18}
retry: {failures: 0}
`

// harmedBooks are those of a study with two workers, one of which now and then
// forgets a trial for good.
func harmedBooks(t *testing.T) history.Books {
	t.Helper()
	must := func(err error) {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
	}
	ctx, store, clock, random := context.Background(), memory.New(), time.Now(), uint64(1)
	service := study.New(store, store, study.Options{
		Now: func() time.Time { return clock }, Random: func() uint64 { random *= 6364136223846793005; return random },
	})
	def, err := studyfile.Parse([]byte(studyFile), studyfile.YAML)
	must(err)
	created, err := service.CreateWarm(ctx, def, nil)
	must(err)
	workers := []string{"worker-0001", "worker-0002"}
	for _, worker := range workers {
		_, err := service.RegisterWorker(ctx, protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 2})
		must(err)
	}
	for turn := 0; ; turn++ {
		reply, err := service.Lease(ctx, protocol.LeaseRequest{Worker: workers[turn%2], Study: created.ID})
		must(err)
		if reply.StudyFinished {
			break
		}
		if reply.Lease == nil || turn%5 == 3 { // it is never heard of again
			for range 100 {
				must(service.Tick(ctx))
				clock = clock.Add(time.Second)
			}
			continue
		}
		lease := reply.Lease
		x, _ := lease.Params["x"].Number()
		for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
			_, err := service.Report(ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: map[string]trial.Float{"loss": trial.Float(x / float64(epoch))}})
			must(err)
			must(service.CommitCheckpoint(ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Artifact: fmt.Sprintf("%064d", epoch)}))
		}
		_, err = service.Finish(ctx, lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: protocol.BudgetReached})
		must(err)
	}
	view, err := service.Study(ctx, created.ID)
	must(err)
	trials, err := store.Trials(ctx, created.ID)
	must(err)
	events, err := store.Events(ctx, created.ID, 0, 1<<20)
	must(err)
	text, err := json.Marshal(map[string]any{"study": view, "trials": trials, "events": events})
	must(err)
	books, err := history.Read(strings.NewReader(string(text)))
	must(err)
	return books
}

func TestAHarmedStudyIsTheUndisturbedOne(t *testing.T) {
	books := harmedBooks(t)
	lost := 0
	for _, one := range books.Trials {
		lost += one.Losses
	}
	if lost == 0 {
		t.Fatal("no trial was lost: there is nothing to compare")
	}
	differences, err := storm.Undisturbed(t.Context(), books)
	if err != nil {
		t.Fatal(err)
	}
	for _, difference := range differences {
		t.Error(difference)
	}
}

func TestWhatCameOutDifferentlyIsFound(t *testing.T) {
	for name, change := range map[string]func(*history.Books){
		"a result":        func(b *history.Books) { b.Trials[0].Results[0].Values[0]++ },
		"a seed":          func(b *history.Books) { b.Trials[1].Seed++ },
		"a state":         func(b *history.Books) { b.Trials[2].State = trial.Cancelled },
		"a trial too few": func(b *history.Books) { b.Trials = b.Trials[:len(b.Trials)-1] },
		"the best":        func(b *history.Books) { b.Study.Progress.Best.Number++ },
		"the status":      func(b *history.Books) { b.Study.Status = protocol.StudyStopped },
		"the search":      func(b *history.Books) { b.Definition.Search.Seed++ },
	} {
		t.Run(name, func(t *testing.T) {
			books := harmedBooks(t)
			change(&books)
			differences, err := storm.Undisturbed(t.Context(), books)
			if err != nil {
				t.Fatal(err)
			}
			if len(differences) == 0 {
				t.Error("it was not found")
			}
		})
	}
}
