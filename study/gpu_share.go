package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// firstSharer is what the study's next trial is expected to use.
func (s *Service) firstSharer(r *session) gpushare.Estimate {
	now := s.options.Now()
	for _, number := range r.queue {
		if until, rests := r.resting[number]; !rests || !now.Before(until) {
			return s.expectedUse(r, &r.trials[number])
		}
	}
	return s.expectedUse(r, nil)
}

// takePart gives a trial that is leased the part of a GPU that was kept for it;
// false where it needs more than that: what is expected of it was not known when
// the part was chosen.
func (tx *transaction) takePart(t *trial.Trial) bool {
	expected, part := tx.expects(*t), gpushare.Part{Place: tx.part.Place, Share: tx.part.Share, Room: tx.part.Room}
	if tx.apart = part.Refuses(expected); tx.apart != "" || !part.Holds(expected) {
		return false
	}
	t.GPUs, t.GPUShare = []int{part.Place}, part.Noted(expected)
	return true
}

// postpone queues a trial that needs a larger part of a GPU than was kept.
func (tx *transaction) postpone(t trial.Trial) error {
	tx.postponed = true
	why := "waits for a larger part of a GPU: " + tx.expects(t).Basis
	if tx.apart != "" {
		why = "waits for another GPU: " + tx.apart
	}
	if t.State == trial.Queued {
		t.Reason = why
		tx.stage(t)
		return nil
	}
	_, err := tx.state(t, trial.Queued, why)
	return err
}

// reshared is the trial with what is expected of it after what was seen of it.
func (tx *transaction) reshared(t trial.Trial) trial.Trial {
	if t.GPUShare == nil {
		return t
	}
	expected, memory := tx.expects(t), int64(0)
	if expected.MemoryPart > 0 {
		memory = t.GPUShare.MemoryBytes
	}
	t.GPUShare = expected.Noted(max(memory, expected.MemoryBytes))
	return t
}

// reshare tells the pool what the trial should take of its GPU from now on, and
// those who wait, if others may join it for that.
func (s *Service) reshare(r *session, t trial.Trial) {
	if t.GPUShare == nil {
		return
	}
	expected := s.expectedUse(r, &t)
	share := expected.Share()
	if expected.MemoryPart > 0 {
		share.MemoryBytes, share.MemoryPart = max(share.MemoryBytes, t.GPUShare.MemoryBytes), 0
	}
	s.allocator.Reshare(t.ID, t.LeaseEpoch, share)
}

// noteGPU notes what a heartbeat says of a trial's GPU. What reports say of it is
// kept; this is only so that others need not wait for the end of a long epoch.
func (s *Service) noteGPU(r *session, t trial.Trial, use *trial.GPUUse) {
	if t.GPUShare == nil || !t.State.Held() {
		return
	}
	opened := r.gpuStudy().Watch(t, use)
	s.reshare(r, t)
	if opened {
		s.notify()
	}
}

// crowding is that a trial shares its GPU, or did under its lease.
type crowding struct {
	beside   bool
	gpuBytes int64
}

// crowdingOf is whether the trial was asked to make way, and its GPU is, or was, shared. The memory of the GPU
// is 0 where nobody knows it.
func (s *Service) crowdingOf(t trial.Trial) (preempted bool, _ crowding) {
	lease, member, out := s.allocator.Leased(t.ID)
	preempted = out && lease.Epoch == t.LeaseEpoch && lease.Leave != ""
	if !out || lease.GPUShare == nil || len(lease.GPUs) == 0 {
		return preempted, crowding{}
	}
	one := crowding{beside: lease.Beside, gpuBytes: pool.RoomOf(member, nil).GPUBytes(lease.GPUs[0])}
	if one.gpuBytes == 0 && t.GPUUse != nil {
		one.gpuBytes = t.GPUUse.GPUMemoryBytes
	}
	return preempted, one
}

// poolGPU is what a running trial has of its machine's GPUs, as the caller sees
// it; nil for none. The study's lock is held.
func (s *Service) poolGPU(ctx context.Context, r *session, t trial.Trial) *protocol.PoolGPU {
	if len(t.GPUs) == 0 {
		return nil
	}
	one := &protocol.PoolGPU{Places: t.GPUs, Share: t.GPUShare, Use: r.gpuStudy().Observed(t)}
	for _, id := range s.allocator.Sharers(t.ID) {
		if study, _ := studyOf(id); s.seenBy(callerOf(ctx), study) {
			one.Beside = append(one.Beside, id)
		} else {
			one.Others++
		}
	}
	return one
}
