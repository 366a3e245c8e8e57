package study

import (
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// sharer is a trial that could have a part of a GPU.
type sharer struct {
	// number is that of a queued trial, or next.
	number   int
	expected gpushare.Estimate
}

// sharers are the trials of which a worker may have one, in the order in which it
// gets them: what is queued, and a new one only where nothing is that the worker
// could ever run. A trial that no GPU has room for keeps new ones from passing it,
// or it might wait for ever.
func (s *Service) sharers(r *session, worker string, meant int, kept awaiting) []sharer {
	if !r.study.Definition.SharesGPUs() {
		return nil
	}
	s.poolMutex.Lock()
	member, _ := s.workers.Member(worker)
	s.poolMutex.Unlock()
	now, empty, runs := s.options.Now(), pool.RoomOf(member, nil), false
	var list []sharer
	for _, number := range r.queue {
		where, moved := kept[number]
		if until, rests := r.resting[number]; rests && now.Before(until) || moved && where != worker {
			continue
		}
		one := sharer{number: number, expected: s.expectedUse(r, &r.trials[number])}
		if _, _, _, fits := empty.GPUFor(one.expected.Share()); fits {
			runs = true
		}
		if moved || number == meant {
			list = slices.Insert(list, 0, one)
		} else {
			list = append(list, one)
		}
	}
	if !runs {
		list = append(list, sharer{number: next, expected: s.expectedUse(r, nil)})
	}
	return list
}

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

// part is the part of a GPU that is kept for a trial which is being chosen.
type part struct {
	// number is that of the queued trial that it is for, or next.
	number int
	gpushare.Part
}

// fitting reports whether the room is enough for the need, or for one of the
// sharers, with the part of a GPU that this one gets. The pool's lock is held.
func (s *Service) fitting(r *session, member pool.Member, room pool.Room, need pool.Need, sharers []sharer) (chosen *part, fits bool) {
	if len(sharers) == 0 {
		return nil, room.Fits(need)
	}
	chosen = s.sharePart(r, member, room, need, sharers)
	return chosen, chosen != nil
}

// sharePart is the part of a GPU that the worker has for one of the sharers, the
// first that fits. The pool's lock is held.
func (s *Service) sharePart(r *session, member pool.Member, room pool.Room, need pool.Need, sharers []sharer) *part {
	for _, one := range sharers {
		for _, joins := range []bool{false, true} { // idle GPUs may be kept for others
			share := one.expected.Share()
			share.Joins = joins
			need.GPUShare = &share
			if !room.Fits(need) || s.withheld(r, member, need, s.lockedKept(r, member.Registration.ID)).reason != "" {
				continue
			}
			place, taken, _, _ := room.GPUFor(share)
			taken.Joins = false
			return &part{one.number, gpushare.Part{Place: place, Share: taken, Room: room}}
		}
	}
	return nil
}

// takePart gives a trial that is leased the part of a GPU that was kept for it;
// false where it needs more than that: what is expected of it was not known when
// the part was chosen.
func (tx *transaction) takePart(t *trial.Trial) bool {
	expected := tx.expects(*t)
	if tx.apart = tx.part.Refuses(expected); tx.apart != "" || !tx.part.Holds(expected) {
		return false
	}
	t.GPUs, t.GPUShare = []int{tx.part.Place}, tx.part.Noted(expected)
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
	s.poolMutex.Lock()
	s.leases.Reshare(t.ID, t.LeaseEpoch, share)
	s.poolMutex.Unlock()
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

// crowdingOf is whether the trial's GPU is, or was, shared. The memory of the GPU
// is 0 where nobody knows it.
func (s *Service) crowdingOf(t trial.Trial) crowding {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	lease, out := s.leases.Lease(t.ID)
	if !out || lease.GPUShare == nil || len(lease.GPUs) == 0 {
		return crowding{}
	}
	one := crowding{beside: lease.Beside}
	if member, known := s.workers.Member(lease.Worker); known {
		one.gpuBytes = pool.RoomOf(member, nil).GPUBytes(lease.GPUs[0])
	}
	if one.gpuBytes == 0 && t.GPUUse != nil {
		one.gpuBytes = t.GPUUse.GPUMemoryBytes
	}
	return one
}

// poolGPU is what a running trial has of its machine's GPUs, as the caller sees
// it; nil for none. The study's lock is held.
func (s *Service) poolGPU(ctx context.Context, r *session, t trial.Trial) *protocol.PoolGPU {
	if len(t.GPUs) == 0 {
		return nil
	}
	one := &protocol.PoolGPU{Places: t.GPUs, Share: t.GPUShare, Use: r.gpuStudy().Observed(t)}
	s.poolMutex.Lock()
	lease, _ := s.leases.Lease(t.ID)
	sharers := s.leases.Sharers(lease)
	s.poolMutex.Unlock()
	for _, id := range sharers {
		if study, _ := studyOf(id); s.seenBy(callerOf(ctx), study) {
			one.Beside = append(one.Beside, id)
		} else {
			one.Others++
		}
	}
	return one
}
