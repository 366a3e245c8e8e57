package study_test

import (
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/memory"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/trial"
)

// wide makes the default study random, over two more parameters, of 120 trials.
func (w *world) wide(replace ...string) protocol.StudyView {
	return w.create(append(replace, "space: {x: {type: float, low: 0, high: 1}}",
		"space: {x: {type: float, low: 0, high: 1}, idle: {type: float, low: 0, high: 1}, kind: {values: [a, b, c]}}",
		"trials: 27", "trials: 120", "method: bohb", "method: random")...)
}

func (w *world) trainAll() {
	w.t.Helper()
	w.register("worker-1")
	for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
		w.train(lease)
	}
}

// TestNoiseHasNoVariance: a surrogate that predicts nothing is not asked.
func TestNoiseHasNoVariance(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 1, max: 1", "trials: 27", "trials: 60", "method: bohb", "method: random")
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			if _, err := w.service.Report(w.ctx, lease.Trial, protocol.Report{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Seconds: 2,
				Metrics: map[string]trial.Float{"accuracy": trial.Float(w.random.NormFloat64())}}); err != nil {
				t.Fatal(err)
			}
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		variance, err := w.service.Importance(w.ctx, created.Name, protocol.ImportanceQuery{Method: protocol.FANOVA})
		if err != nil || len(variance.Rungs) != 1 || len(variance.Rungs[0].Parameters) != 0 || len(variance.Notes) != 1 || !strings.Contains(variance.Notes[0], "as good as nothing") {
			t.Errorf("from noise comes %+v, %v", variance, err)
		}
	})(t)
}

func TestVarianceOfAStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.wide()
		w.trainAll()
		rung := 0
		answer, err := w.service.Importance(w.ctx, created.Name, protocol.ImportanceQuery{Method: protocol.FANOVA, Rung: &rung})
		if err != nil || len(answer.Rungs) != 1 || answer.Rungs[0].Rung != 0 || !strings.Contains(answer.Method, "fANOVA") {
			t.Fatalf("%+v, %v", answer, err)
		}
		if first := answer.Rungs[0].Parameters[0]; first.Name != "x" || first.Share < 0.8 || first.Chance != nil || len(answer.Rungs[0].Parameters) != 3 {
			t.Errorf("%+v", answer.Rungs[0])
		}
		if _, err := w.service.Importance(w.ctx, created.Name, protocol.ImportanceQuery{Method: "guess"}); !problem.Is(err, problem.Invalid) {
			t.Errorf("a method that is none: %v", err)
		}
	})(t)
}

// BenchmarkVariance is what a division of the variance takes, in a study
// of 10,000 trials and 20 parameters.
func BenchmarkVariance(b *testing.B) {
	kept := memory.New()
	service := study.New(kept, kept, study.Options{Now: time.Now, Random: rand.Uint64})
	text := strings.Replace(defaultFile, "space: {x: {type: float, low: 0, high: 1}}", "space:", 1)
	rows := "space:\n"
	for i := range 20 {
		rows += fmt.Sprintf("  x%d: {type: float, low: 0, high: 1}\n", i)
	}
	def, err := studyfile.Parse([]byte(strings.Replace(text, "space:\n", rows, 1)), studyfile.YAML)
	if err != nil {
		b.Fatal(err)
	}
	random, now := rand.New(rand.NewPCG(1, 1)), time.Now()
	change := journal.Change{Insert: &journal.Study{ID: "big", Definition: def, Status: protocol.StudyStopped, Created: now, Finished: &now}}
	for i := range 10_000 {
		configuration, err := def.Space.Sample(random)
		if err != nil {
			b.Fatal(err)
		}
		x, _ := configuration["x0"].Number()
		y, _ := configuration["x1"].Number()
		value := trial.Float(x + y*y + 0.1*random.NormFloat64())
		change.Trials = append(change.Trials, journal.TrialWrite{Trial: trial.Trial{
			ID: trial.ID(fmt.Sprintf("big-%d", i)), Study: "big", Number: i, Configuration: configuration, Origin: "random",
			State: trial.Completed, Results: []trial.Result{{Rung: 0, Values: []trial.Float{value}}}, Created: now,
		}})
	}
	if err := kept.Apply(b.Context(), change); err != nil {
		b.Fatal(err)
	}
	for b.Loop() {
		if _, err := service.Importance(b.Context(), "big", protocol.ImportanceQuery{Method: protocol.FANOVA}); err != nil {
			b.Fatal(err)
		}
	}
}
