package study_test

import (
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

// TestAQuotaIsNoWaiting has one user's quota hold back the second of two trials, which
// run for 10 s each.
func TestAQuotaIsNoWaiting(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(append(limited, oneRung...)...)
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
		w.trainFor(w.mustLease("worker-2"), 10*time.Second)
		if met := w.deflation("example").Met; met == nil || met.Trials != 2 || met.Mean != 10 {
			t.Errorf("%+v", met)
		}
	})(t)
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
