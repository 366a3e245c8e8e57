package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// gpuStudy is the study as the model of GPUs sees it. The study's lock is held for as
// long as it is used.
func (r *session) gpuStudy() gpushare.Study {
	return gpushare.Study{ID: r.id, Owner: r.owner, Definition: &r.study.Definition, Trials: r.trials, Usage: &r.gpuUsage}
}

// expectedUse is what a trial of the study should use of a GPU that it shares; nil
// stands for one that the search has not begun yet. The study's lock is held.
func (s *Service) expectedUse(r *session, t *trial.Trial) gpushare.Estimate {
	return s.gpus.Expect(r.gpuStudy(), t)
}

// Learn learns from what was seen of trainings on GPUs, where enough of it is new,
// and stores what was seen and learned. It takes seconds: the caller runs it now
// and then in addition to everything else, once at a time.
func (s *Service) Learn(ctx context.Context) error {
	if err := s.learning.Enter(ctx); err != nil {
		return err
	}
	defer s.learning.Leave()
	learned := s.gpus.Learn()
	if err := s.saveGPUs(ctx, false); err != nil {
		return err
	}
	if learned {
		s.notify() // whoever waits may share a GPU now
	}
	return nil
}

// saveGPUs stores what is new of GPUs. What could not be stored is tried again.
func (s *Service) saveGPUs(ctx context.Context, closing bool) error {
	entries, err := s.gpus.Entries(s.options.Now(), closing)
	if err == nil && len(entries) > 0 {
		err = s.store.Apply(ctx, Change{Pool: entries})
	}
	if err != nil {
		s.gpus.Again(entries)
		return fmt.Errorf("store what was seen of GPUs: %w", err)
	}
	return nil
}

// observeGPU learns from what a trial was seen to use and how long its epoch took: a
// pass over all of the data, without what came before the training. The study's lock is
// held.
func (s *Service) observeGPU(ctx context.Context, t trial.Trial, use *trial.GPUUse, seconds float64) {
	s.gpus.Observe(ctx, t, s.gpuPlace(t), gpushare.Epoch{Use: use, Seconds: seconds})
}

// gpuPlace is the GPU on which the trial runs; the zero value where it has none, or it
// is not known of which type.
func (s *Service) gpuPlace(t trial.Trial) gpushare.Place {
	member, held, _ := s.allocator.Worker(t.Worker)
	return gpuPlaceOf(t, member, held)
}

// gpuPlaceOf is that of a trial whose worker has those leases.
func gpuPlaceOf(t trial.Trial, member pool.Member, held []pool.Lease) gpushare.Place {
	names := member.Registration.Machine.GPUs
	if len(names) == 0 {
		return gpushare.Place{}
	}
	if len(t.GPUs) != 1 {
		for _, name := range names {
			if name != names[0] {
				return gpushare.Place{}
			}
		}
		return gpushare.Place{GPU: names[0]}
	}
	gpu := t.GPUs[0]
	if gpu < 0 || gpu >= len(names) {
		return gpushare.Place{}
	}
	at := gpushare.Place{GPU: names[gpu], Exact: true}
	for _, lease := range held {
		if lease.Trial != t.ID && slices.Contains(lease.GPUs, gpu) {
			at.Colocated = append(at.Colocated, pool.LeaseID{Trial: lease.Trial, Epoch: lease.Epoch})
		}
	}
	slices.SortFunc(at.Colocated, func(a, b pool.LeaseID) int { return cmp.Compare(a.Trial, b.Trial) })
	return at
}

// gpuExpected is what the trial should use of the GPU that it is on, or else of
// those of the workers that are connected; nil where there are none. The study's
// lock is held.
func (s *Service) gpuExpected(ctx context.Context, r *session, t trial.Trial) *protocol.GPUExpected {
	if callerOf(ctx).Sight == Shared {
		return nil // who came by a link hears nothing of workers
	}
	types := s.allocator.GPUTypes()
	if at := s.gpuPlace(t); at.GPU != "" && t.State.Held() {
		types = []string{at.GPU}
	}
	return s.gpus.Predict(ctx, r.gpuStudy(), t, types)
}

// sharersCores is how many cores the command of a lease counts on: those that are
// kept for it, or, beside others on an elastic worker, its part of the machine.
func (r *session) sharersCores(lease protocol.Lease, here *allocator.Reservation) int {
	if lease.Cores > 0 || here.Part == nil || !here.Room.Elastic {
		return lease.Cores
	}
	return here.Room.CoresOf(pool.Need{Cores: r.tuned().Demands(here.Room.Machine), GPUShare: &here.Part.Share})
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
