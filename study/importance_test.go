package study_test

import (
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestImportanceOfAStudy(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create("space: {x: {type: float, low: 0, high: 1}}",
			"space: {x: {type: float, low: 0, high: 1}, idle: {type: float, low: 0, high: 1}}", "trials: 27", "trials: 120", "method: bohb", "method: random")
		w.register("worker-1")
		importance := func() protocol.Importance {
			t.Helper()
			answer, err := w.service.Importance(w.ctx, created.Name, protocol.ImportanceQuery{})
			if err != nil {
				t.Fatal(err)
			}
			return answer
		}
		if early := importance(); len(early.Rungs) != 0 || len(early.Notes) != 1 || !strings.Contains(early.Notes[0], "10 measured trials") {
			t.Errorf("before any trial the answer is %+v", early)
		}
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.train(lease)
		}
		answer := importance()
		if len(answer.Rungs) != 3 || answer.Rungs[0].Rung != 2 {
			t.Fatalf("the answer has %d rungs, want three, the highest first", len(answer.Rungs))
		}
		for _, rung := range answer.Rungs {
			if first := rung.Parameters[0]; first.Name != "x" || rung.Rung == 0 && first.Chance > 0.05 {
				t.Errorf("at rung %d the first is %+v, want x", rung.Rung, first)
			}
			if last := rung.Parameters[1]; last.Share > 0.4 {
				t.Errorf("at rung %d the parameter that does nothing has a share of %g", rung.Rung, last.Share)
			}
		}
	})(t)
}

func TestImportanceKnowsTheDirection(t *testing.T) {
	// Both studies try the same configurations on one rung, so only the
	// direction tells which of them are the good ones.
	shares := map[string]float64{}
	for _, direction := range []string{"maximize", "minimize"} {
		in(func(t *testing.T, w *world) {
			created := w.create("direction: maximize", "direction: "+direction, "trials: 27", "trials: 60", "method: bohb", "method: random",
				"policy: multi", "policy: epochs", "min: 1, max: 9", "min: 1, max: 1", "space: {x: {type: float, low: 0, high: 1}}",
				"space: {x: {type: float, low: 0, high: 1}, idle: {type: float, low: 0, high: 1}}")
			w.register("worker-1")
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				w.train(lease)
			}
			answer, err := w.service.Importance(w.ctx, created.Name, protocol.ImportanceQuery{})
			if err != nil || len(answer.Rungs) == 0 {
				t.Fatalf("%+v, %v", answer, err)
			}
			for _, p := range answer.Rungs[0].Parameters {
				if p.Name == "x" {
					shares[direction] = p.Share
				}
			}
		})(t)
	}
	if shares["maximize"] == shares["minimize"] {
		t.Errorf("both directions give %g", shares["maximize"])
	}
}

func (w *world) trainAll() {
	w.t.Helper()
	w.register("worker-1")
	for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
		w.train(lease)
	}
}
