package study_test

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"reflect"
	"slices"
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

func (w *world) ablation(name string, query protocol.AblationQuery) protocol.Ablation {
	w.t.Helper()
	answer, err := w.service.Ablation(w.ctx, name, query)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func TestAblationOfAStudy(t *testing.T) {
	for _, direction := range []string{"maximize", "minimize"} {
		t.Run(direction, in(func(t *testing.T, w *world) {
			created := w.wide("direction: maximize", "direction: "+direction)
			if early := w.ablation(created.Name, protocol.AblationQuery{}); early.From != nil || early.Surrogate != nil || len(early.Notes) != 1 || !strings.Contains(early.Notes[0], "0 measured trials") {
				t.Errorf("before any trial the answer is %+v", early)
			}
			w.trainAll()
			answer := w.ablation(created.Name, protocol.AblationQuery{})
			if answer.From == nil || answer.To == nil || answer.Gain <= 0 || answer.Surrogate.Explained < 0.5 {
				t.Fatalf("the answer is %+v", answer)
			}
			if best := w.view(created.Name).Progress.Best; answer.To.Trial != best.Number || !maps.Equal(answer.To.Params, best.Params) {
				t.Errorf("the path leads to trial %d, the best is %d", answer.To.Trial, best.Number)
			}
			for _, end := range []*protocol.AblationEnd{answer.From, answer.To} {
				var want *protocol.MeasuredTrial // a bracket may have begun above the rung
				for _, result := range w.trial(trial.ID(fmt.Sprintf("%s-%d", created.ID, end.Trial))).Results {
					if result.Rung == answer.Rung {
						want = &protocol.MeasuredTrial{Trial: end.Trial, Value: result.Values[0]}
					}
				}
				if !reflect.DeepEqual(end.Measured, want) {
					t.Errorf("trial %d measured %+v, the path says %+v", end.Trial, want, end.Measured)
				}
			}
			if answer.From.Measured == nil {
				t.Error("the median trial of a rung was not measured there")
			}
			first, shares, gains := answer.Steps[0], 0.0, 0.0
			if first.Switched[0].Parameter != "x" || *first.Share < 0.7 {
				t.Errorf("the first step is %+v, want x with most of the gain", first)
			}
			sign := map[string]float64{"maximize": 1, "minimize": -1}[direction]
			for i, step := range answer.Steps {
				shares += *step.Share
				gains += step.Gain
				if improvement := sign * (step.After.Predicted - step.Before); math.Abs(improvement-step.Gain) > 1e-9 {
					t.Errorf("step %d goes from %g to %g and claims a gain of %g", i, step.Before, step.After.Predicted, step.Gain)
				}
			}
			if math.Abs(shares-1) > 1e-9 || math.Abs(gains-answer.Gain) > 1e-9 {
				t.Errorf("the shares sum to %g, the gains to %g of %g", shares, gains, answer.Gain)
			}
			if last := answer.Steps[len(answer.Steps)-1].After; !reflect.DeepEqual(last, answer.To.AblationPoint) {
				t.Errorf("the last step ends at %+v, the path at %+v", last, answer.To)
			}
		}))
	}
}

func TestAblationOfChosenTrials(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.wide()
		w.trainAll()
		number := func(n int) *int { return &n }
		answer := w.ablation(created.Name, protocol.AblationQuery{From: number(3), To: number(5), Rung: number(1)})
		if answer.From.Trial != 3 || answer.To.Trial != 5 || answer.Rung != 1 || answer.Surrogate.Trials >= 120 {
			t.Errorf("the path is from %d to %d at rung %d", answer.From.Trial, answer.To.Trial, answer.Rung)
		}
		back := w.ablation(created.Name, protocol.AblationQuery{From: number(5), To: number(3), Rung: number(1)})
		if math.Abs(back.Gain+answer.Gain) > 1e-9 || (answer.Gain > 0) == (back.Gain > 0) {
			t.Errorf("one way gains %g, the other %g", answer.Gain, back.Gain)
		}
		down := back
		if answer.Gain < 0 {
			down = answer
		}
		if down.Steps[0].Share != nil || !slices.ContainsFunc(down.Notes, func(note string) bool { return strings.Contains(note, "no gain") }) {
			t.Errorf("the way down is %+v", down)
		}
		if same := w.ablation(created.Name, protocol.AblationQuery{From: number(3), To: number(3)}); len(same.Steps) != 0 || !strings.Contains(same.Notes[0], "same configuration") {
			t.Errorf("the way to itself is %+v", same)
		}
		for field, query := range map[string]protocol.AblationQuery{
			"from": {From: number(120)}, "to": {To: number(-1)}, "objective": {Objective: 1}, "rung": {Rung: number(3)},
		} {
			_, err := w.service.Ablation(w.ctx, created.Name, query)
			if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), field) {
				t.Errorf("%s: %v", field, err)
			}
		}
	})(t)
}

// TestNoiseHasNoPath: a surrogate that predicts nothing is not asked.
func TestNoiseHasNoPath(t *testing.T) {
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
		answer := w.ablation(created.Name, protocol.AblationQuery{})
		if answer.Surrogate == nil || answer.From != nil || len(answer.Steps) != 0 || len(answer.Notes) != 1 || !strings.Contains(answer.Notes[0], "as good as nothing") {
			t.Errorf("from noise comes %+v", answer)
		}
		variance, err := w.service.Importance(w.ctx, created.Name, protocol.ImportanceQuery{Method: protocol.FANOVA})
		if err != nil || len(variance.Rungs) != 1 || len(variance.Rungs[0].Parameters) != 0 || len(variance.Notes) != 1 {
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

// TestThePathStartsWhereNoModelWas: the default start is the middle one of the
// trials that no model chose, whatever it found since.
func TestThePathStartsWhereNoModelWas(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("policy: multi", "policy: epochs", "min: 1, max: 9", "min: 1, max: 1", "trials: 27", "trials: 120",
			"space: {x: {type: float, low: 0, high: 1}}", "space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}}")
		w.trainAll()
		page, err := w.service.Trials(w.ctx, created.Name, protocol.TrialQuery{Limit: 200})
		if err != nil {
			t.Fatal(err)
		}
		var drawn []int
		for _, one := range page.Trials {
			if one.Origin == "random" || one.Origin == "sobol" {
				drawn = append(drawn, one.Number)
			}
		}
		if len(drawn) < 5 || len(drawn) > 100 {
			t.Fatalf("%d of %d trials were drawn at random", len(drawn), len(page.Trials))
		}
		answer := w.ablation(created.Name, protocol.AblationQuery{})
		warned := slices.ContainsFunc(answer.Notes, func(note string) bool {
			return strings.Contains(note, fmt.Sprintf("only %d of 120 trials were drawn freely", len(drawn)))
		})
		if warned != (2*len(drawn) < 120) || !warned {
			t.Errorf("%d of 120 trials were drawn freely, and the notes are %q", len(drawn), answer.Notes)
		}
		if answer.From == nil || answer.From.Trial != drawn[len(drawn)/2] {
			t.Errorf("the path starts at %+v, want trial %d; %v", answer.From, drawn[len(drawn)/2], answer.Notes)
		}
	})(t)
}

// BenchmarkAnalyses is what a path and a division of the variance take, in a
// study of 10,000 trials and 20 parameters.
func BenchmarkAnalyses(b *testing.B) {
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
	b.Run("path", func(b *testing.B) {
		for b.Loop() {
			if answer, err := service.Ablation(b.Context(), "big", protocol.AblationQuery{}); err != nil || len(answer.Steps) != 20 {
				b.Fatal(answer, err)
			}
		}
	})
	b.Run("fanova", func(b *testing.B) {
		for b.Loop() {
			if _, err := service.Importance(b.Context(), "big", protocol.ImportanceQuery{Method: protocol.FANOVA}); err != nil {
				b.Fatal(err)
			}
		}
	})
}
