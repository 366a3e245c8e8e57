package study_test

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/upload"
)

// What somebody sent may be committed by him alone, for a while, and only so much
// of it is remembered: never as long as a sweep leaves it, and never without end.
func TestUploadsAreOfWhoSentThem(t *testing.T) {
	in(func(t *testing.T, w *world) {
		const many = 4096
		w.create()
		rack := w.as(workerOf("rack"))
		rack.register("box")
		lease := rack.mustLease("box")
		rack.mustReport(lease, 1)
		artifact := func(n int) string { return fmt.Sprintf("%064x", n) }
		commit := func(w *world, n int) error {
			return w.service.CommitCheckpoint(w.ctx, lease.Trial, protocol.CheckpointCommit{LeaseEpoch: lease.LeaseEpoch, Epoch: 1, Artifact: artifact(n), Bytes: 7})
		}
		refused := func(what string, err error) {
			t.Helper()
			if !problem.Is(err, problem.Conflict) || !strings.Contains(err.Error(), "in the last 10 minutes") {
				t.Errorf("%s: %v", what, err)
			}
		}
		fine := func(what string, err error) {
			t.Helper()
			if err != nil {
				t.Errorf("%s: %v", what, err)
			}
		}
		for _, other := range []access.Caller{workerOf("desk"), user("alice"), {Holder: access.Administrators}} {
			w.service.Uploaded(access.WithCaller(w.ctx, other), artifact(1), 7, false)
		}
		refused("what others sent", commit(rack, 1))
		rack.service.Uploaded(rack.ctx, artifact(1), 7, false)
		fine("one's own", commit(rack, 1))

		rack.service.Uploaded(rack.ctx, artifact(2), 7, false)
		time.Sleep(upload.Life + time.Second)
		refused("sent long ago", commit(rack, 2))
		fine("the trial's own, sent long ago", commit(rack, 1))
		fine("the clock ticks", w.service.Tick(w.ctx))

		for n := range many + 1 {
			rack.service.Uploaded(rack.ctx, artifact(10+n), 7, false)
		}
		refused("one too many before", commit(rack, 10))
		fine("the oldest that is remembered", commit(rack, 11))
		fine("the newest", commit(rack, 10+many))
		fine("the one before the newest", commit(rack, 11))
	})(t)
}
