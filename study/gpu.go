package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// sharing brings what is seen of trials on GPUs to the model, and what the model expects
// to the pool.
type sharing struct {
	parts
	learning gate.Gate // lets one model of GPUs be fitted at a time
}

// Learn learns from what was seen of trainings on GPUs, where enough of it is new,
// and stores what was seen and learned. It takes seconds: the caller runs it now
// and then in addition to everything else, once at a time.
func (s *sharing) Learn(ctx context.Context) error {
	if err := s.learning.Enter(ctx); err != nil {
		return err
	}
	defer s.learning.Leave()
	learned := s.gpus.Learn()
	if err := s.saveGPUs(ctx, false); err != nil {
		return err
	}
	if learned {
		s.sessions.Notify() // whoever waits may share a GPU now
	}
	return nil
}

// saveGPUs stores what is new of GPUs. What could not be stored is tried again.
func (s *sharing) saveGPUs(ctx context.Context, closing bool) error {
	entries, err := s.gpus.Entries(s.options.Now(), closing)
	if err == nil && len(entries) > 0 {
		err = s.store.Apply(ctx, journal.Change{Pool: entries})
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
func (s *sharing) observeGPU(ctx context.Context, t trial.Trial, use *trial.GPUUse, seconds float64) {
	s.gpus.Observe(ctx, t, gpuPlace(s.allocator, t), gpushare.Epoch{Use: use, Seconds: seconds})
}

// gpuPlace is the GPU on which the trial runs; the zero value where it has none, or it
// is not known of which type.
func gpuPlace(pool *allocator.Allocator, t trial.Trial) gpushare.Place {
	member, held, _ := pool.Worker(t.Worker)
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

// reshare tells the pool what the trial should take of its GPU from now on, and
// those who wait, if others may join it for that.
func (s *sharing) reshare(r *session.Session, t trial.Trial) {
	if t.GPUShare == nil {
		return
	}
	expected := r.ExpectedUse(&t)
	share := expected.Share()
	if expected.MemoryPart > 0 {
		share.MemoryBytes, share.MemoryPart = max(share.MemoryBytes, t.GPUShare.MemoryBytes), 0
	}
	s.allocator.Reshare(t.ID, t.LeaseEpoch, share)
}

// noteGPU notes what a heartbeat says of a trial's GPU. What reports say of it is
// kept; this is only so that others need not wait for the end of a long epoch.
func (s *sharing) noteGPU(r *session.Session, t trial.Trial, use *trial.GPUUse) {
	if t.GPUShare == nil || !t.State.Held() {
		return
	}
	opened := r.GPUStudy().Watch(t, use)
	s.reshare(r, t)
	if opened {
		s.sessions.Notify()
	}
}

// crowdingOf is whether the trial was asked to make way, and its GPU is, or was, shared. The memory of the GPU
// is 0 where nobody knows it.
func (s *sharing) crowdingOf(t trial.Trial) (preempted bool, _ session.Crowding) {
	lease, member, out := s.allocator.Leased(t.ID)
	preempted = out && lease.Epoch == t.LeaseEpoch && lease.Leave != ""
	if !out || lease.GPUShare == nil || len(lease.GPUs) == 0 {
		return preempted, session.Crowding{}
	}
	one := session.Crowding{Beside: lease.Beside, GPUBytes: pool.RoomOf(member, nil).GPUBytes(lease.GPUs[0])}
	if one.GPUBytes == 0 && t.GPUUse != nil {
		one.GPUBytes = t.GPUUse.GPUMemoryBytes
	}
	return preempted, one
}
