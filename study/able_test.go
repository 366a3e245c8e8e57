package study_test

import (
	"math"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// limited is a study whose trials' times are looked at.
var limited = []string{"name: example", "name: example\napproximation: {most_drop: 0.1}"}

// TestWaitingBeginsWhenATrialCouldStart by its study's own limits: what its parallel, a
// pause or its owner's quota holds back waits for no place. What finds every worker busy
// does.
func TestWaitingBeginsWhenATrialCouldStart(t *testing.T) {
	oneAtATime := []string{"name: example", "name: example\nparallel: 1\napproximation: {most_drop: 0.1}"}
	for name, c := range map[string]struct {
		replace []string
		between func(w *world)
		want    float64
	}{
		"parallel": {oneAtATime, nil, 10},
		"paused": {oneAtATime, func(w *world) {
			if _, err := w.service.Pause(w.ctx, "example"); err != nil {
				w.t.Fatal(err)
			}
			w.sleep(30 * time.Second)
			if _, err := w.service.Resume(w.ctx, "example"); err != nil {
				w.t.Fatal(err)
			}
		}, 10},
		"free for a while": {oneAtATime, func(w *world) { w.sleep(4 * time.Second) }, 12},
		"no place":         {limited, nil, 15},
	} {
		t.Run(name, in(func(t *testing.T, w *world) {
			w.create(append(append([]string(nil), oneRung...), c.replace...)...)
			w.register("worker-1")
			w.trainFor(w.mustLease("worker-1"), 10*time.Second)
			if c.between != nil {
				c.between(w)
			}
			w.trainFor(w.mustLease("worker-1"), 10*time.Second)
			if met := w.deflation("example").Met; met == nil || met.Trials != 2 || met.Mean != c.want {
				t.Errorf("two trainings of 10 s were met with %+v, want a mean of %g s", met, c.want)
			}
		}))
	}
}

// TestTrialsAtOnceWaitEachForItself: the second of parallel: 2 from the first moment on.
// Without parallel, and with one at a time, the next waits from when the one before began,
// or ended.
func TestTrialsAtOnceWaitEachForItself(t *testing.T) {
	for parallel, second := range map[string]float64{"parallel: 2": 40, "": 20, "parallel: 1": 0} {
		t.Run(parallel, in(func(t *testing.T, w *world) {
			w.create("name: example", "name: low\npriority: -1")
			w.register("worker-1", "worker-2")
			one, other := w.mustLease("worker-1"), w.mustLease("worker-2")
			w.create("name: example", "name: high\npriority: 5\nresponse_seconds: {mean: 600}\n"+parallel)
			w.hold(20*time.Second, one, other)
			w.train(one)
			first := w.leaseFrom("worker-1", "high")
			w.hold(20*time.Second, first, other)
			w.train(other)
			if parallel == "parallel: 1" {
				w.train(first)
			}
			w.trainFor(w.leaseFrom("worker-2", "high"), time.Second)
			want := ((20 + 20) + (second + 1)) / 2
			if parallel != "parallel: 1" {
				w.train(first)
				want += 0.5
			}
			w.sleep(6 * time.Second)
			if told := w.deflation("high"); told.Met == nil || told.Met.Trials != 2 || math.Abs(told.Met.Mean-want) > 1e-6 {
				t.Errorf("%+v was met, want %g s in the mean", told.Met, want)
			}
		}))
	}
}

// TestAQuotaIsNoWaiting has one user's quota hold back the second and third trial, which
// run for 10 s each.
func TestAQuotaIsNoWaiting(t *testing.T) {
	for _, parallel := range []string{"", "\nparallel: 3"} {
		in(func(t *testing.T, w *world) {
			w.create(append([]string{limited[0], limited[1] + parallel}, oneRung...)...)
			if _, err := w.service.SetQuota(w.ctx, "admin", protocol.Quota{Trials: 1}); err != nil {
				t.Fatal(err)
			}
			w.register("worker-1", "worker-2")
			first := w.mustLease("worker-1")
			w.sleep(10 * time.Second)
			if lease := w.lease("worker-2"); lease != nil {
				t.Fatal("the quota is one trial")
			}
			w.train(first)
			second := w.mustLease("worker-2")
			if _, err := w.service.SetQuota(w.ctx, "admin", protocol.Quota{Trials: 2}); err != nil {
				t.Fatal(err)
			}
			third := w.mustLease("worker-1")
			w.trainFor(second, 10*time.Second)
			w.train(third)
			if met := w.deflation("example").Met; met == nil || met.Trials != 3 || met.Mean != 10 {
				t.Errorf("%q: %+v", parallel, met)
			}
		})(t)
	}
}

// TestARestIsNoWaiting: a trial that was lost twice is given to nobody for a while.
func TestARestIsNoWaiting(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(append(limited, oneRung...), "trials: 27", "trials: 1")...)
		w.register("worker-1")
		lease := w.mustLease("worker-1")
		for range 2 {
			if _, err := w.finish(lease, protocol.Vanished); err != nil {
				t.Fatal(err)
			}
			w.again("worker-1", lease.Trial)
			lease.LeaseEpoch++
		}
		w.trainFor(lease, 10*time.Second)
		if met := w.deflation("example").Met; met == nil || met.Trials != 1 || met.Mean != 10 {
			t.Errorf("%+v", met)
		}
	})(t)
}
