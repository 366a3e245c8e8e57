package study_test

import (
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func TestProgressAddsUpWhatTheEpochsRanWith(t *testing.T) {
	in(func(t *testing.T, w *world) {
		b := w.box(false)
		for _, name := range []string{"first", "second", "example"} {
			tuned(w, name)
			b.train(name, slowWithTwo)
		}
		type key struct {
			phase   trial.Phase
			threads int
		}
		epochs, seconds, phases := map[key]int{}, map[key]float64{}, map[trial.Phase]int{}
		var saved *trial.Saving
		for _, one := range trialsOf(t, w, "example") {
			reports, err := w.store.Reports(w.ctx, one.ID)
			if err != nil {
				t.Fatal(err)
			}
			for _, report := range reports {
				of := key{report.SystemPhase, threadsOf(report.System, 0)}
				epochs[of]++
				seconds[of] += float64(report.Seconds)
				phases[report.SystemPhase]++
				saved = saved.Plus(report.Saved)
				if report.SystemWhy == "" {
					t.Errorf("epoch %d of trial %d does not say why it ran with %v", report.Epoch, one.Number, report.System)
				}
			}
		}
		check := func() {
			t.Helper()
			p := w.view("example").Progress
			if len(p.SystemUse) != len(epochs) || len(p.EpochsByPhase) != len(phases) {
				t.Errorf("%d entries and phases %v, want %v and %v", len(p.SystemUse), p.EpochsByPhase, epochs, phases)
			}
			for i, use := range p.SystemUse {
				of := key{use.Phase, threadsOf(use.Configuration, 0)}
				if use.Epochs != epochs[of] || math.Abs(float64(use.Seconds)-seconds[of]) > 1e-6 || p.EpochsByPhase[use.Phase] != phases[use.Phase] {
					t.Errorf("%+v, want %d epochs and %v s", use, epochs[of], seconds[of])
				}
				if i > 0 && use.Epochs > p.SystemUse[i-1].Epochs {
					t.Errorf("%d epochs come behind %d", use.Epochs, p.SystemUse[i-1].Epochs)
				}
			}
			if p.Saved == nil || math.Abs(float64(p.Saved.Seconds-saved.Seconds)) > 1e-6 || math.Abs(float64(p.Saved.Joules-saved.Joules)) > 1e-6 {
				t.Errorf("saved %+v, want %+v", p.Saved, saved)
			}
		}
		check()
		w.start() // from the store
		check()
	})(t)
}

func TestProgressOfAnUntunedStudySaysNothingOfTheSystem(t *testing.T) {
	in(func(t *testing.T, w *world) {
		untuned(w, "example")
		w.box(false).train("example", fastWithTwo)
		if p := w.view("example").Progress; p.SystemUse != nil || p.EpochsByPhase != nil || p.Saved != nil {
			t.Errorf("%+v", p)
		}
	})(t)
}

// The log has every epoch by itself: sums of them would make it grow with the
// square of a trial's length.
func TestTheLogLeavesSumsOut(t *testing.T) {
	in(func(t *testing.T, w *world) {
		tuned(w, "example")
		b := w.box(true)
		b.train("example", slowWithTwo)
		events, err := w.store.Events(w.ctx, w.view("example").ID, 0, 100000)
		if err != nil || len(events) == 0 {
			t.Fatal(len(events), err)
		}
		for _, event := range events {
			if event.Kind == journal.TrialState && strings.Contains(string(event.Data), "system_use") {
				t.Fatalf("event %d has the sums: %s", event.Sequence, event.Data)
			}
		}
	})(t)
}
