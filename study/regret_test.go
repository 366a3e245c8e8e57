package study_test

import (
	"testing"
	"testing/synctest"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// The bound appears with the first results that are enough, and a restarted
// server shows it again.
func TestTheRegretBoundSurvivesARestart(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		created := w.create("stop: {trials: 27}", "stop: {trials: 27, regret: 1e-9}",
			"budget: {policy: multi, epochs: {min: 1, max: 9}, data_fraction: {min: 0.25, max: 1}, eta: 3}", "budget: {epochs: 1}")
		w.register("worker-1")
		bound := func() *protocol.RegretBound { return w.view(created.ID).Progress.RegretBound }
		for number := range 7 { // two for the one parameter, and five
			if got := bound(); got != nil {
				t.Fatalf("a bound with %d results: %+v", number, got)
			}
			w.train(w.mustLease("worker-1"))
		}
		before := bound()
		if before == nil || before.Results != 7 || !(before.Value > 0) || before.Threshold != 1e-9 {
			t.Fatalf("with 7 results the bound is %+v", before)
		}
		w.start()
		if after := bound(); after == nil || *after != *before {
			t.Errorf("after a restart the bound is %+v, was %+v", after, before)
		}
	})
}
