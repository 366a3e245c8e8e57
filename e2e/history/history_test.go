package history_test

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/e2e/history"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

const studyFile = `
name: example
command: [train]
objective: {metric: loss, direction: minimize}
space: {x: {type: float, low: 0, high: 1}}
budget: {policy: epochs, epochs: {min: 1, max: 9}, eta: 3}
search: {method: random, seed: 7}
stop: {trials: 9}
retry: {failures: 1}
`

// run is a study that one well-behaved worker ran to its end, except that it
// failed once and was lost once.
type run struct {
	t       *testing.T
	store   *memory.Store
	service *study.Service
	log     history.Log
	clock   time.Time
	id      string
}

const worker = "worker-0001"

// newRun runs the study and returns what the worker noted, and the books.
func newRun(t *testing.T) ([]history.Operation, history.Books) {
	t.Helper()
	r := &run{t: t, store: memory.New(), clock: time.Now()}
	random := uint64(1)
	r.service = study.New(r.store, r.store, study.Options{
		Now: func() time.Time { return r.clock }, Random: func() uint64 { random *= 6364136223846793005; return random },
	})
	def, err := studyfile.Parse([]byte(studyFile), studyfile.YAML)
	r.must(err)
	created, err := r.service.CreateWarm(t.Context(), def, nil)
	r.must(err)
	r.id = created.ID
	_, err = r.service.RegisterWorker(t.Context(), protocol.WorkerRegistration{ID: worker, Name: worker, Slots: 1})
	r.must(err)
	for leases := 0; ; leases++ {
		reply, err := r.service.Lease(t.Context(), protocol.LeaseRequest{Worker: worker, Study: r.id})
		r.must(err)
		if reply.StudyFinished {
			break
		}
		if reply.Lease == nil {
			t.Fatal("nothing to lease, and the study is not over")
		}
		r.train(*reply.Lease, leases)
	}
	return r.log.Operations(), r.books()
}

func (r *run) must(err error) {
	r.t.Helper()
	if err != nil {
		r.t.Fatal(err)
	}
}

// train runs a lease; the third one fails, and the fifth is lost.
func (r *run) train(lease protocol.Lease, number int) {
	r.note(history.Operation{Kind: history.Lease, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Worker: worker, Acknowledged: true})
	for epoch := lease.FirstEpoch; epoch <= lease.Budget.Epochs; epoch++ {
		if number == 2 || number == 4 {
			break
		}
		x, _ := lease.Params["x"].Number()
		said := history.Operation{Kind: history.Report, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Worker: worker, Rung: lease.Rung, Epoch: epoch,
			Metrics: map[string]trial.Float{"loss": trial.Float(x / float64(epoch)), "diverged": trial.Float(math.NaN())}}
		r.note(said)
		_, err := r.service.Report(context.Background(), lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: epoch, Metrics: said.Metrics, Seconds: 0.1})
		r.must(err)
		said.Acknowledged = true
		r.note(said)
	}
	if number == 4 {
		r.must(r.service.Tick(context.Background())) // one that comes late believes that it slept itself
		for range 200 {
			r.clock = r.clock.Add(time.Second)
			r.must(r.service.Tick(context.Background()))
		}
		return
	}
	outcome := protocol.CommandFailed
	if number != 2 {
		outcome = protocol.BudgetReached
		said := history.Operation{Kind: history.Checkpoint, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, Worker: worker, Rung: lease.Rung, Epoch: lease.Budget.Epochs,
			Artifact: fmt.Sprintf("%063x%d", lease.Number, lease.Rung)}
		r.note(said)
		r.must(r.service.CommitCheckpoint(context.Background(), lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: said.Epoch, Artifact: said.Artifact, Bytes: 1}))
		said.Acknowledged = true
		r.note(said)
	}
	reply, err := r.service.Finish(context.Background(), lease.Trial, protocol.FinishRequest{LeaseEpoch: lease.LeaseEpoch, Outcome: outcome})
	r.must(err)
	r.note(history.Operation{Kind: history.Finish, Trial: lease.Trial, LeaseEpoch: lease.LeaseEpoch, State: reply.State, Acknowledged: true})
}

func (r *run) note(operation history.Operation) { r.log.Note(operation) }

// books goes the way of an export: through JSON.
func (r *run) books() history.Books {
	r.t.Helper()
	view, err := r.service.Study(r.t.Context(), r.id)
	r.must(err)
	trials, err := r.store.Trials(r.t.Context(), r.id)
	r.must(err)
	events, err := r.store.Events(r.t.Context(), r.id, 0, 1<<20)
	r.must(err)
	text, err := json.Marshal(map[string]any{"study": view, "trials": trials, "events": events})
	r.must(err)
	books, err := history.Read(strings.NewReader(string(text)))
	r.must(err)
	books.Artifacts = map[string]string{}
	for _, t := range trials {
		if t.Checkpoint != nil {
			books.Artifacts[t.Checkpoint.Artifact] = t.Checkpoint.Artifact
		}
	}
	return books
}

func TestAnHonestRunBreaksNothing(t *testing.T) {
	operations, books := newRun(t)
	for _, violation := range history.Check(operations, books) {
		t.Error(violation)
	}
	if len(operations) < 50 || len(books.Trials) != 9 {
		t.Errorf("the run has %d operations and %d trials: too little to judge by", len(operations), len(books.Trials))
	}
	lost := slices.ContainsFunc(books.Trials, func(t trial.Trial) bool { return t.Losses == 1 })
	failed := slices.ContainsFunc(books.Trials, func(t trial.Trial) bool { return t.Failures == 1 })
	if !lost || !failed {
		t.Errorf("a trial was lost: %v; one has failed: %v", lost, failed)
	}
}

// drop takes the first event away for which the function is true, and numbers
// the others anew: what a store that forgets would show.
func drop(books *history.Books, which func(journal.Event) bool) {
	at := slices.IndexFunc(books.Events, which)
	books.Events = slices.Delete(books.Events, at, at+1)
	for i := range books.Events {
		books.Events[i].Sequence = int64(i) + 1
	}
}

// edit changes the data of the first event for which the function is true.
func edit[T any](t *testing.T, books *history.Books, which func(journal.Event) bool, change func(*T)) {
	t.Helper()
	at := slices.IndexFunc(books.Events, which)
	var data T
	if err := json.Unmarshal(books.Events[at].Data, &data); err != nil {
		t.Fatal(err)
	}
	change(&data)
	text, err := json.Marshal(data)
	if err != nil {
		t.Fatal(err)
	}
	books.Events[at].Data = text
}

// forget drops the newest checkpoint: an older one would be replaced anyway.
func forget(_ *testing.T, books *history.Books) {
	last := int64(0)
	for _, event := range books.Events {
		if event.Kind == journal.Checkpointed {
			last = event.Sequence
		}
	}
	drop(books, func(e journal.Event) bool { return e.Sequence == last })
}

func report(event journal.Event) bool { return event.Kind == journal.Reported }
func leased(event journal.Event) bool {
	return event.Kind == journal.TrialState && event.State == string(trial.Leased)
}

// TestEveryLieIsFound changes one thing in an honest run's books.
func TestEveryLieIsFound(t *testing.T) {
	for name, test := range map[string]struct {
		want history.Invariant
		lie  func(*testing.T, *history.Books)
	}{
		"a report is gone":     {history.Kept, func(_ *testing.T, b *history.Books) { drop(b, report) }},
		"the log has a hole":   {history.Kept, func(_ *testing.T, b *history.Books) { b.Events = slices.Delete(b.Events, 9, 10) }},
		"a checkpoint is gone": {history.Kept, forget},
		"a lease is gone":      {history.Kept, func(_ *testing.T, b *history.Books) { drop(b, leased) }},
		"a trial is gone":      {history.Kept, func(_ *testing.T, b *history.Books) { b.Trials = b.Trials[:8] }},
		"a trial is as it was": {history.Kept, func(_ *testing.T, b *history.Books) { b.Trials[3].LeaseEpoch-- }},
		"another value": {history.Sent, func(t *testing.T, b *history.Books) {
			edit(t, b, report, func(r *trial.Report) { r.Metrics["loss"] /= 2 })
		}},
		"NaN as a number": {history.Sent, func(t *testing.T, b *history.Books) {
			edit(t, b, report, func(r *trial.Report) { r.Metrics["diverged"] = 0 })
		}},
		"a trial ends twice":           {history.OneEnd, endsTwice},
		"a trial does not end":         {history.OneEnd, func(_ *testing.T, b *history.Books) { b.Trials[0].State = trial.Running }},
		"lost, and never queued again": {history.Bounded, func(_ *testing.T, b *history.Books) { b.Trials[2].State = trial.Lost }},
		"a lease has an old number": {history.Fenced, func(t *testing.T, b *history.Books) {
			edit(t, b, leased, func(one *trial.Trial) { one.LeaseEpoch = 0 })
		}},
		"two workers have a trial":   {history.Bounded, leasedTwice},
		"more trials than the bound": {history.Bounded, func(_ *testing.T, b *history.Books) { b.Definition.Stop.Trials = 8 }},
		"a zombie's report":          {history.Current, func(t *testing.T, b *history.Books) { edit(t, b, report, func(r *trial.Report) { r.LeaseEpoch++ }) }},
		"an epoch counts twice":      {history.Current, reportedTwice},
		"a sum is wrong":             {history.Recount, func(_ *testing.T, b *history.Books) { b.Trials[0].Seconds++ }},
		"the count of epochs":        {history.Recount, func(_ *testing.T, b *history.Books) { b.Study.Progress.Epochs++ }},
		"a result nobody reported":   {history.Recount, func(_ *testing.T, b *history.Books) { b.Trials[0].Results[0].Values[0] = 0 }},
		"another trial is the best":  {history.Recount, func(_ *testing.T, b *history.Books) { b.Study.Progress.Best.Value++ }},
		"a decision":                 {history.Replayed, func(_ *testing.T, b *history.Books) { b.Definition.Search.Seed++ }},
		"nobody's checkpoint":        {history.Behind, func(_ *testing.T, b *history.Books) { b.Trials[0].Checkpoint.Artifact = "other" }},
		"other bytes":                {history.Behind, func(_ *testing.T, b *history.Books) { b.Artifacts[b.Trials[0].Checkpoint.Artifact] = "other" }},
		"an artifact is gone":        {history.Behind, func(_ *testing.T, b *history.Books) { clear(b.Artifacts) }},
	} {
		t.Run(name, func(t *testing.T) {
			operations, books := newRun(t)
			test.lie(t, &books)
			found := history.Check(operations, books)
			if !slices.ContainsFunc(found, func(v history.Violation) bool { return v.Invariant == test.want }) {
				t.Errorf("it was not found that %s (%s); found: %v", name, test.want, found)
			}
		})
	}
}

func endsTwice(_ *testing.T, books *history.Books) {
	at := slices.IndexFunc(books.Events, func(e journal.Event) bool {
		return e.Kind == journal.TrialState && trial.State(e.State).Terminal() && e.State != string(trial.Lost)
	})
	again := books.Events[at]
	again.Sequence = int64(len(books.Events)) + 1
	books.Events = append(books.Events, again)
}

func leasedTwice(t *testing.T, books *history.Books) {
	at := slices.IndexFunc(books.Events, leased)
	books.Events = slices.Insert(books.Events, at+1, books.Events[at])
	for i := range books.Events {
		books.Events[i].Sequence = int64(i) + 1
	}
}

func reportedTwice(_ *testing.T, books *history.Books) {
	at := slices.IndexFunc(books.Events, report)
	books.Events = slices.Insert(books.Events, at+1, books.Events[at])
	for i := range books.Events {
		books.Events[i].Sequence = int64(i) + 1
	}
}

func TestWhatWasNeverSentIsFound(t *testing.T) {
	operations, books := newRun(t)
	for _, kind := range []history.Kind{history.Report, history.Checkpoint} {
		at := slices.IndexFunc(operations, func(one history.Operation) bool { return one.Kind == kind })
		gone := operations[at]
		less := slices.DeleteFunc(slices.Clone(operations), func(one history.Operation) bool {
			return one.Kind == kind && one.Trial == gone.Trial && one.Epoch == gone.Epoch
		})
		found := history.Check(less, books)
		if !slices.ContainsFunc(found, func(v history.Violation) bool { return v.Invariant == history.Sent }) {
			t.Errorf("a %s that nobody sent was not found: %v", kind, found)
		}
	}
}

func TestWhatIsNoExportIsRefused(t *testing.T) {
	for _, text := range []string{"", "[]", `{"study": 1}`, `{"study": {"definition": {"unknown": 1}}}`} {
		if books, err := history.Read(strings.NewReader(text)); err == nil {
			t.Errorf("%q was read as %+v", text, books)
		}
	}
}
