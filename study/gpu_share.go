package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/packing"
	"github.com/tandem-tune/tandem/workers/pool"
)

// sharer is a trial that could have a part of a GPU.
type sharer struct {
	// number is that of a queued trial, or next.
	number   int
	expected expectation
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
		if _, _, _, fits := empty.GPUFor(one.expected.share()); fits {
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
func (s *Service) firstSharer(r *session) expectation {
	now := s.options.Now()
	for _, number := range r.queue {
		if until, rests := r.resting[number]; !rests || !now.Before(until) {
			return s.expectedUse(r, &r.trials[number])
		}
	}
	return s.expectedUse(r, nil)
}

// opens reports whether a trial with the need would take a part of a GPU of the
// worker that no trial has yet.
func opens(member pool.Member, held []pool.Lease, need pool.Need) bool {
	if need.GPUShare == nil {
		return false
	}
	_, _, joins, fits := pool.RoomOf(member, held).GPUFor(*need.GPUShare)
	return fits && !joins
}

// part is the part of a GPU that is kept for a trial which is being chosen.
type part struct {
	// number is that of the queued trial that it is for, or next.
	number int
	place  int
	share  pool.GPUShare
	room   pool.Room
}

// holds reports whether the part is enough for a trial of which that is expected.
// One that is kept as a whole GPU is, as far as the memory goes.
func (p part) holds(expected expectation) bool {
	needs := p.room.OnGPU(p.place, expected.share())
	if p.share.Utilization < 0 {
		return needs.MemoryBytes <= p.room.GPUBytes(p.place) || p.room.GPUBytes(p.place) == 0
	}
	const rounding = 1e-9
	return expected.known() && needs.Utilization <= p.share.Utilization+rounding && needs.MemoryBytes <= p.share.MemoryBytes
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
			share := one.expected.share()
			share.Joins = joins
			need.GPUShare = &share
			if !room.Fits(need) || s.withheld(r, member, need, s.lockedKept(r, member.Registration.ID)).reason != "" {
				continue
			}
			place, taken, _, _ := room.GPUFor(share)
			taken.Joins = false
			return &part{number: one.number, place: place, share: taken, room: room}
		}
	}
	return nil
}

// takePart gives a trial that is leased the part of a GPU that was kept for it;
// false where it needs more than that: what is expected of it was not known when
// the part was chosen.
func (tx *transaction) takePart(t *trial.Trial) bool {
	expected := tx.expects(*t)
	tx.apart = ""
	for _, resident := range tx.part.room.Residents(tx.part.place) {
		tx.apart = orElse(tx.apart, expected.refuses(resident))
	}
	if tx.apart != "" || !tx.part.holds(expected) {
		return false
	}
	t.GPUs = []int{tx.part.place}
	t.GPUShare = expected.noted(tx.part.room.OnGPU(tx.part.place, expected.share()).MemoryBytes)
	return true
}

// postpone queues a trial that needs a larger part of a GPU than was kept.
func (tx *transaction) postpone(t trial.Trial) error {
	tx.postponed = true
	why := "waits for a larger part of a GPU: " + tx.expects(t).basis
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
	if expected.memoryPart > 0 {
		memory = t.GPUShare.MemoryBytes
	}
	t.GPUShare = expected.noted(max(memory, expected.memoryBytes))
	return t
}

// reshare tells the pool what the trial should take of its GPU from now on, and
// those who wait, if others may join it for that.
func (s *Service) reshare(r *session, t trial.Trial) {
	if t.GPUShare == nil {
		return
	}
	expected := s.expectedUse(r, &t)
	share := expected.share()
	if expected.memoryPart > 0 {
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
	opened := r.watch(t, use)
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

// mostCrowded is how often a trial may run out of memory beside others: then it
// has the GPU to itself.
const mostCrowded = 3

// wantsItsOwn reports whether the trial has GPUs to itself, after what it learned from
// running out of memory beside others: of whichever size they are.
func wantsItsOwn(t trial.Trial) bool {
	learned := t.GPUShortage
	return learned != nil && (learned.Times >= mostCrowded || learned.GPUMemoryBytes > 0 && learned.NeedBytes >= learned.GPUMemoryBytes)
}

// crowdedOut puts a trial back into the queue that ran out of memory on a GPU
// which it shared: that is no failure of its own. It comes back with a need that
// is larger (packing.Resubmit), and alone in the end.
func (tx *transaction) crowdedOut(t trial.Trial, request protocol.FinishRequest) (trial.Trial, error) {
	shortage := trial.GPUShortage{}
	if t.GPUShortage != nil {
		shortage = *t.GPUShortage
	}
	shortage.Times++
	if tx.crowding.gpuBytes > 0 { // else its worker has not registered again yet
		shortage.GPUMemoryBytes = tx.crowding.gpuBytes
	}
	held := int64(0)
	if t.GPUUse != nil {
		held = t.GPUUse.MemoryBytes
	}
	job := packing.Job{Name: string(t.ID), MemoryBytes: max(t.GPUShare.MemoryBytes, shortage.NeedBytes)}
	again, err := packing.Resubmit(job, held, cmp.Or(shortage.GPUMemoryBytes, mostGPUBytes))
	if err != nil || shortage.Times >= mostCrowded {
		again.MemoryBytes = max(shortage.GPUMemoryBytes, again.MemoryBytes)
	}
	shortage.NeedBytes = again.MemoryBytes
	t.GPUShortage = &shortage
	how := fmt.Sprintf("%.3g GiB are kept for it from now on", float64(shortage.NeedBytes)/gibibyte)
	if wantsItsOwn(t) {
		how = "it has a GPU to itself from now on"
	}
	return tx.state(t, trial.Queued, fmt.Sprintf("ran out of GPU memory beside other trials (%d of at most %d times), which is no failure of its own: %s; %s",
		shortage.Times, mostCrowded, how, orElse(request.Reason, "the command failed")))
}

// poolGPU is what a running trial has of its machine's GPUs, as the caller sees
// it; nil for none. The study's lock is held.
func (s *Service) poolGPU(ctx context.Context, r *session, t trial.Trial) *protocol.PoolGPU {
	if len(t.GPUs) == 0 {
		return nil
	}
	one := &protocol.PoolGPU{Places: t.GPUs, Share: t.GPUShare}
	if use := r.observed(&t); use != nil {
		one.Use = &use.GPUUse
	}
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
