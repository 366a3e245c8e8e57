package study_test

import (
	"math"
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

func (w *world) measurements(ref string, points int) protocol.Measurements {
	w.t.Helper()
	answer, err := w.service.Measurements(w.ctx, ref, points)
	if err != nil {
		w.t.Fatal(err)
	}
	return answer
}

func TestMeasurementsAreListedInTheOrderInWhichTheyHappened(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create(append(singleRung, "maximize", "minimize")...)
		w.register("worker-1")
		for _, value := range []float64{0.5, math.NaN(), 0.7, 0.25} {
			lease := w.mustLease("worker-1")
			w.sleep(10 * time.Second)
			w.value(lease, 1, value)
			if _, err := w.finish(lease, protocol.BudgetReached); err != nil {
				t.Fatal(err)
			}
		}
		w.mustLease("worker-1")
		check := func() {
			t.Helper()
			got := w.measurements(created.ID, 100)
			if got.Total != 4 || len(got.Results) != 4 || got.Untimed != 0 || got.Study != created.Name {
				t.Fatalf("%+v", got)
			}
			for at, one := range got.Results {
				if one.Number != at || one.Seconds == nil || math.Abs(*one.Seconds-float64(10*(at+1))) > 0.5 {
					t.Errorf("result %d: %+v", at, one)
				}
			}
			if !got.Results[1].Values[0].IsNaN() || got.Results[3].Values[0] != 0.25 {
				t.Errorf("values: %+v", got.Results)
			}
			if len(got.Leaders) != 2 || got.Leaders[0].Number != 0 || got.Leaders[1].Number != 3 || got.Leaders[1].Value != 0.25 || got.Leaders[1].Seconds != *got.Results[3].Seconds {
				t.Errorf("leaders: %+v", got.Leaders)
			}
			if tally := got.Rungs[0]; len(got.Rungs) != 1 || tally.Active != 1 || tally.Measured != 4 || tally.Promoted != 0 || tally.Best == nil || *tally.Best != 0.25 {
				t.Errorf("rungs: %+v", got.Rungs)
			}
		}
		check()
		w.start() // what is read from the store says the same
		check()
	})(t)
}

func TestAHigherRungTakesTheLead(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		for range 30 {
			if lease := w.lease("worker-1"); lease != nil {
				w.train(lease)
			}
		}
		got := w.measurements(created.ID, 1000)
		if len(got.Rungs) != 3 || got.Rungs[1].Measured == 0 || got.Rungs[0].Promoted < got.Rungs[1].Measured {
			t.Fatalf("rungs: %+v", got.Rungs)
		}
		for i := 1; i < len(got.Leaders); i++ {
			before, after := got.Leaders[i-1], got.Leaders[i]
			if after.Rung < before.Rung || after.Rung == before.Rung && after.Value <= before.Value || after.Seconds < before.Seconds {
				t.Errorf("%+v leads after %+v", after, before)
			}
		}
		best := w.view(created.ID).Progress.Best
		if last := got.Leaders[len(got.Leaders)-1]; best == nil || last.Number != best.Number || last.Value != best.Value {
			t.Errorf("the last leader is %+v, and the best trial %+v", last, best)
		}
		ups := 0
		for _, one := range got.Results {
			if one.Promoted {
				ups++
			}
		}
		if want := got.Rungs[0].Promoted + got.Rungs[1].Promoted; ups != want {
			t.Errorf("%d results went up, the rungs say %d", ups, want)
		}
	})(t)
}

func TestOfManyMeasurementsSomeAreChosen(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.train(lease)
		}
		all := w.measurements(created.ID, 100_000)
		if len(all.Results) != all.Total || all.Total < 30 {
			t.Fatalf("%d of %d results", len(all.Results), all.Total)
		}
		for _, points := range []int{1, 2, 3, 7, 20, all.Total - 1, all.Total} {
			some := w.measurements(created.ID, points)
			if len(some.Results) > points || points > 6 && len(some.Results) < points-3 || some.Total != all.Total || len(some.Leaders) != len(all.Leaders) {
				t.Errorf("%d points asked for: %d of %d results, %d of %d leaders", points, len(some.Results), some.Total, len(some.Leaders), len(all.Leaders))
			}
			at := -1
			for _, one := range some.Results {
				found := slices.IndexFunc(all.Results, func(other protocol.Measurement) bool {
					return other.Number == one.Number && other.Rung == one.Rung
				})
				if found <= at {
					t.Errorf("%d points: result %d comes after %d", points, found, at)
				}
				at = found
			}
			// The best of every rung is never left out.
			for rung, tally := range some.Rungs {
				has := slices.ContainsFunc(some.Results, func(one protocol.Measurement) bool { return one.Rung == rung && one.Values[0] == *tally.Best })
				if points >= 6 && !has {
					t.Errorf("%d points: the best of rung %d is left out", points, rung)
				}
			}
		}
	})(t)
}

// An earlier version stored results without their time.
func TestResultsOfAnEarlierVersion(t *testing.T) {
	in(func(t *testing.T, w *world) {
		created := w.create()
		w.register("worker-1")
		for lease := w.lease("worker-1"); lease != nil; lease = w.lease("worker-1") {
			w.sleep(time.Second)
			w.train(lease)
		}
		trials, err := w.store.Trials(w.ctx, created.ID)
		if err != nil {
			t.Fatal(err)
		}
		unknown := 0
		for _, one := range trials {
			before := one
			one.Results = slices.Clone(one.Results)
			for i := range one.Results {
				one.Results[i].At = nil
				if i < len(one.Results)-1 || one.Finished == nil {
					unknown++
				}
			}
			write := journal.TrialWrite{Trial: one, Guard: &journal.Guard{State: before.State, LeaseEpoch: before.LeaseEpoch}}
			if err := w.store.Apply(w.ctx, journal.Change{Trials: []journal.TrialWrite{write}}); err != nil {
				t.Fatal(err)
			}
		}
		w.start()
		got := w.measurements(created.ID, 1000)
		if unknown == 0 || got.Untimed != unknown || len(got.Results) != got.Total {
			t.Fatalf("%d have no time, want %d of %d", got.Untimed, unknown, got.Total)
		}
		for at, one := range got.Results {
			if (one.Seconds == nil) != (at < unknown) {
				t.Errorf("result %d: %+v", at, one)
			}
		}
		best := w.view(created.ID).Progress.Best
		if last := got.Leaders[len(got.Leaders)-1]; last.Number != best.Number || last.Seconds <= 0 {
			t.Errorf("the last leader is %+v, the best %+v", last, best)
		}
	})(t)
}

func TestAResultHasItsTime(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(singleRung...)
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		w.sleep(5 * time.Second)
		then := time.Now()
		w.value(lease, 1, 0.5)
		w.sleep(5 * time.Second)
		if got := w.trial(lease.Trial); len(got.Results) != 1 || got.Results[0].At == nil || !got.Results[0].At.Equal(then) || got.Results[0].At.Location() != time.UTC {
			t.Errorf("measured at %v: %+v", then, got.Results)
		}
		if state := w.trial(lease.Trial).State; state != trial.Running {
			t.Errorf("the trial is %s", state)
		}
	})(t)
}
