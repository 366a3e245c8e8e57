package study_test

import (
	"maps"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestCensus(t *testing.T) {
	t.Parallel()
	synctest.Test(t, func(t *testing.T) {
		w := newWorld(t, 1)
		if c := w.service.Census(); c.Studies[protocol.StudyRunning] != 0 || c.Alive != 0 || c.Leases != 0 || len(c.Trials) != len(trial.States()) {
			t.Errorf("of nothing: %+v", c)
		}
		w.create()
		paused := w.create("name: example", "name: second")
		over := w.create("name: example", "name: third")
		if _, err := w.service.Pause(w.ctx, paused.ID); err != nil {
			t.Fatal(err)
		}
		if _, err := w.service.Stop(w.ctx, over.ID); err != nil {
			t.Fatal(err)
		}
		w.register("worker-1", "worker-2", "worker-3")
		for _, worker := range []string{"worker-1", "worker-2"} {
			if w.lease(worker) == nil {
				t.Fatal("there is nothing to lease")
			}
		}
		c := w.service.Census()
		if !maps.Equal(c.Studies, map[protocol.StudyStatus]int{protocol.StudyRunning: 1, protocol.StudyPaused: 1}) {
			t.Errorf("studies %v", c.Studies)
		}
		if c.Trials[trial.Leased] != 2 || c.Leases != 2 || c.Alive != 3 || c.Silent != 0 || c.Slots != 3 {
			t.Errorf("%+v", c)
		}
		time.Sleep(50 * time.Second)
		w.register("worker-3")
		time.Sleep(20 * time.Second)
		if c := w.service.Census(); c.Alive != 1 || c.Silent != 2 || c.Slots != 1 {
			t.Errorf("after 70 s without a word of two workers: %+v", c)
		}
	})
}
