package study_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestCorrelationsOfAStudy(t *testing.T) {
	for _, direction := range []string{"maximize", "minimize"} {
		t.Run(direction, in(func(t *testing.T, w *world) {
			created := w.create("direction: maximize", "direction: "+direction, "trials: 27", "trials: 60", "method: bohb", "method: random")
			w.register("worker-1")
			correlations := func() protocol.Correlations {
				t.Helper()
				answer, err := w.service.Correlations(w.ctx, created.Name)
				if err != nil {
					t.Fatal(err)
				}
				return answer
			}
			if early := correlations(); len(early.Rungs) != 0 || len(early.Notes) != 1 || !strings.Contains(early.Notes[0], "4 trials in common") {
				t.Errorf("before any trial the answer is %+v", early)
			}
			for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
				w.train(lease)
			}
			answer := correlations()
			var seen [][2]int
			for _, one := range answer.Rungs {
				seen = append(seen, [2]int{one.From, one.To})
				// Every epoch of the simulated training has the same order.
				if math.Abs(one.Spearman-1) > 1e-9 || one.Corrected < 0.999 || one.Trials < 4 || one.Below <= one.Trials {
					t.Errorf("%+v", one)
				}
			}
			if len(seen) != 3 || seen[0] != [2]int{0, 1} || seen[1] != [2]int{0, 2} || seen[2] != [2]int{1, 2} {
				t.Errorf("compared %v", seen)
			}
			if len(answer.Notes) != 1 || !strings.Contains(answer.Notes[0], "among all") {
				t.Errorf("%q", answer.Notes)
			}
		}))
	}
}
