package study_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// waits is a workload on eight cores whose time goes into its data: more processes prepare
// them faster, up to four.
var waits = workload{name: "data", seconds: func(threads, _ int) float64 { return 2 + 0.1*float64(threads) },
	loads: func(loaders int) float64 { return 1 + 4/math.Max(1, math.Min(4, float64(loaders))) }}

// TestAScriptThatReadsItHasItsLoaderTuned runs studies with system: auto. What the script
// takes by itself is the default, known after the first epoch, and to the next study of the
// script at once. No value is above the cores of a slot. On an elastic worker, where other
// trials wait for the cores, the machine's throughput decides.
func TestAScriptThatReadsItHasItsLoaderTuned(t *testing.T) {
	for name, elastic := range map[string]bool{"one slot": false, "elastic": true} {
		t.Run(name, func(t *testing.T) {
			in(func(t *testing.T, w *world) {
				b := &box{w: w, id: "large-box", cores: 8, elastic: elastic, honours: true, loaders: 1}
				b.register()
				for i, study := range []string{"first", "second"} {
					w.create("name: example", "name: "+study+"\nsystem: auto", "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 12")
					b.train(study, waits)
					values := map[int64]int{}
					for _, one := range trialsOf(t, w, study) {
						reports, err := w.store.Reports(w.ctx, one.ID)
						if err != nil {
							t.Fatal(err)
						}
						for _, report := range reports {
							loaders, told := report.System[system.LoaderWorkers].Integer()
							if values[loaders]++; !told || report.SystemPhase == "" {
								t.Errorf("%s: epoch %d of trial %d ran %v in phase %q", study, report.Epoch, one.Number, report.System, report.SystemPhase)
							}
						}
						if first := reports[0]; i == 1 && first.SystemPhase != trial.Script && first.SystemPhase != trial.Study && first.SystemPhase != trial.Control {
							t.Errorf("%s: trial %d began in phase %s", study, one.Number, first.SystemPhase)
						}
					}
					t.Logf("%s: epochs by processes %v", study, values)
					for loaders := range values {
						if loaders > 8 {
							t.Errorf("%s: %d processes on 8 cores", study, loaders)
						}
					}
					if n := values[4] + values[8]; i == 1 && !elastic && n < 3*(values[0]+values[1]+values[2]) {
						t.Errorf("%s: %v epochs by processes, want most with 4 or 8", study, values)
					}
				}
			})(t)
		})
	}
}

// TestAScriptThatReadsNoLoaderHasNone: nothing of it is set, probed or told.
func TestAScriptThatReadsNoLoaderHasNone(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(false)
		w.create("name: example", "name: plain\nsystem: auto", "min: 0.25, max: 1", "min: 1, max: 1", "trials: 27", "trials: 12")
		b.train("plain", slowWithTwo)
		for _, one := range trialsOf(t, w, "plain") {
			if _, has := one.Setting.Configuration[system.LoaderWorkers]; has {
				t.Errorf("trial %d has %v", one.Number, one.Setting.Configuration)
			}
		}
	})(t)
}
