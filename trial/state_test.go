package trial_test

import (
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
)

// arrows is the life of a trial as docs/concepts.md draws it, written down a
// second time.
var arrows = map[trial.State]string{
	trial.Queued:    "leased pruned cancelled",
	trial.Leased:    "running queued paused completed pruned failed lost cancelled",
	trial.Running:   "running queued paused completed pruned failed lost cancelled",
	trial.Paused:    "queued leased paused completed pruned cancelled",
	trial.Lost:      "queued",
	trial.Completed: "", trial.Failed: "",
	trial.Pruned: "queued paused", trial.Cancelled: "queued paused",
}

func allowed(from, to trial.State) bool {
	for word := range words(arrows[from]) {
		if word == string(to) {
			return true
		}
	}
	return false
}

func words(text string) func(func(string) bool) {
	return func(yield func(string) bool) {
		start := 0
		for i := 0; i <= len(text); i++ {
			if i == len(text) || text[i] == ' ' {
				if i > start && !yield(text[start:i]) {
					return
				}
				start = i + 1
			}
		}
	}
}

func TestStatesChangeAlongTheArrowsOnly(t *testing.T) {
	for _, from := range trial.States() {
		for _, to := range trial.States() {
			before := trial.Trial{ID: "s-1", State: from, Reason: "before"}
			after, err := before.To(to, "because")
			switch {
			case from == trial.Leased && to == trial.Leased || from == trial.Queued && to == trial.Queued:
				if err == nil {
					t.Errorf("%s became %s again", from, to)
				}
			case allowed(from, to) && (err != nil || after.State != to || after.Reason != "because"):
				t.Errorf("%s to %s: %v, %s", from, to, err, after.State)
			case !allowed(from, to) && (!problem.Is(err, problem.Conflict) || after.State != from || after.Reason != "before"):
				t.Errorf("%s to %s: %v, %s; want a conflict that changes nothing", from, to, err, after.State)
			}
		}
	}
}

func TestATerminalStateLeadsToNoWorker(t *testing.T) {
	for _, state := range trial.States() {
		for _, next := range trial.States() {
			if back := next == trial.Queued || next == trial.Paused; state.Terminal() && allowed(state, next) && !back {
				t.Errorf("%s is terminal, and leads to %s", state, next)
			}
		}
		if !state.Terminal() && arrows[state] == "" {
			t.Errorf("%s is not terminal, and leads nowhere", state)
		}
		if state.Held() && state.Terminal() {
			t.Errorf("%s is held and terminal", state)
		}
	}
}

func TestWhereATrialGoesOn(t *testing.T) {
	climbing := budget.Rung{Index: 1, Budget: budget.Budget{Epochs: 3, DataFraction: 0.5}}
	afresh := budget.Rung{Index: 1, Budget: budget.Budget{Epochs: 3, DataFraction: 0.5}, FromScratch: true}
	for name, c := range map[string]struct {
		checkpoint *trial.Checkpoint
		rung       budget.Rung
		epoch      int
	}{
		"without a checkpoint":                  {nil, climbing, 1},
		"behind the checkpoint of the rung":     {&trial.Checkpoint{Epoch: 2, Rung: 1}, climbing, 3},
		"behind the one of the rung below":      {&trial.Checkpoint{Epoch: 1, Rung: 0}, climbing, 2},
		"from the start, as only the data grow": {&trial.Checkpoint{Epoch: 3, Rung: 0}, afresh, 1},
		"behind its own, on such a rung":        {&trial.Checkpoint{Epoch: 2, Rung: 1}, afresh, 3},
	} {
		if got := (trial.Trial{Checkpoint: c.checkpoint}).NextEpoch(c.rung); got != c.epoch {
			t.Errorf("%s: epoch %d, want %d", name, got, c.epoch)
		}
	}
}

func TestEnergiesAddUp(t *testing.T) {
	rapl, guess := trial.Energy{Joules: 2, Method: "rapl"}, trial.Energy{Joules: 3, Method: "estimate: a guess"}
	rapid.Check(t, func(t *rapid.T) {
		parts := rapid.SliceOf(rapid.SampledFrom([]trial.Energy{{}, rapl, guess, {Joules: 1, Method: "nvml"}})).Draw(t, "parts")
		var sum trial.Energy
		joules, estimated := trial.Float(0), false
		for _, part := range parts {
			sum = sum.Plus(part)
			joules += part.Joules
			estimated = estimated || part.Estimated()
		}
		if sum.Joules != joules || sum.Estimated() != estimated {
			t.Fatalf("%v is %+v, want %g joules, estimated %v", parts, sum, float64(joules), estimated)
		}
	})
}
