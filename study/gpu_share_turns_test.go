package study_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/protocol"
)

// TestAHeartbeatAndItsReportCountOnce: what a report says, heartbeats have said
// before: 40 s are no minute.
func TestAHeartbeatAndItsReportCountOnce(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("shares", "auto")...)
		w.gpuBox("worker-box", 8, 1)
		first := w.mustLease("worker-box")
		beat := protocol.Heartbeat{Leases: []protocol.HeldLease{{Trial: first.Trial, LeaseEpoch: first.LeaseEpoch, GPUUse: seenAlone(0.4, 35, 4)}}}
		if _, err := w.service.Heartbeat(w.ctx, "worker-box", beat); err != nil {
			t.Fatal(err)
		}
		w.usage(first, 1, seenAlone(0.4, 40, 4))
		if share := w.trial(first.Trial).GPUShare; !share.Alone {
			t.Errorf("after 40 s it has %+v", share)
		}
		w.wantPlace(w.lease("worker-box"), "none", "after 40 s")
	})(t)
}

// TestAnUnknownTrialIsNotPassedForEver: a study of which nothing is known needs a
// GPU that no trial has, which small parts of others must not keep from it for
// ever.
func TestAnUnknownTrialIsNotPassedForEver(t *testing.T) {
	in(func(t *testing.T, w *world) {
		w.create(sharing("small", "0.3")...)
		w.gpuBox("worker-box", 8, 1)
		leases := []*protocol.Lease{w.mustLease("worker-box"), w.mustLease("worker-box")}
		w.create(sharing("unknown", "auto")...)
		for range 20 {
			w.sleep(2 * time.Second)
			one := leases[0]
			w.train(one)
			leases = leases[1:]
			for {
				lease := w.lease("worker-box")
				if lease == nil {
					break
				}
				if lease.Study == "unknown" {
					return
				}
				leases = append(leases, lease)
			}
			if len(leases) == 0 {
				t.Fatal("nothing runs, and the unknown one did not come")
			}
			w.beat("worker-box", leases...)
		}
		t.Error("twenty small ones passed it")
	})(t)
}
