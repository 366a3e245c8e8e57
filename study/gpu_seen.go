package study

import (
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/experience"
	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

// epochSeen is an epoch of a trial on a GPU.
type epochSeen struct {
	use *trial.GPUUse
	// seconds are of a pass over all of the data, without what came before the
	// training; 0 where there was none.
	seconds float64
}

// epochOf is the epoch of an accepted report.
func epochOf(t trial.Trial, report protocol.Report) epochSeen {
	return epochSeen{use: report.GPUUse, seconds: float64(report.Seconds-report.SetupSeconds) / fractionAt(t, t.Rung)}
}

// onGPU is where a trial runs: the type of its GPU, and who shares it.
type onGPU struct {
	name string
	// whole says that it is known which GPU it is, so that beside has all who share
	// it.
	whole  bool
	beside []holding
}

// sawGPU learns from what a trial was seen to use and how long it took. The
// study's lock is held.
func (s *Service) sawGPU(ctx context.Context, r *session, t trial.Trial, seen epochSeen) {
	on, known := s.gpuUnder(t)
	if !known || len(t.GPUs) > 1 {
		return
	}
	key, batch := "", batchOf(t.Configuration)
	if t.Inference != nil {
		key = t.Inference.Architecture
	}
	now, l := s.options.Now(), s.gpuLessons
	features, told := utilization.Features{}, false
	if key != "" {
		features, told = s.described(ctx, key, batch)
	}
	l.mutex.Lock()
	defer l.mutex.Unlock()
	before := l.growing[t.ID]
	if before.lease != t.LeaseEpoch || before.gpu != on.name {
		before = growing{gpu: on.name, lease: t.LeaseEpoch, use: before.useOn(on.name), expected: before.expected}
	}
	next := before
	next.use, next.reported, next.beside, next.kind = before.use.Plus(seen.use), now, on.beside, kindOf(r.id, key, batch)
	l.keep(t.ID, next)
	if use := next.use; told && use != nil && use.Alone && use.Seconds >= experience.LeastSeconds && use.MemoryBytes > 0 {
		l.see(on.name, experience.Profile{
			Training: string(t.ID), Seconds: use.Seconds, At: now.UTC(),
			Sample: utilization.Sample{Features: features, Family: key, Utilization: use.Utilization, MemoryBytes: use.MemoryBytes},
		})
	}
	// Of a first epoch of a lease, and of one in which others came or went, it is not
	// known beside whom it ran.
	if on.whole && !before.reported.IsZero() && seen.seconds > 0 && slices.Equal(before.beside, on.beside) {
		l.paced(next, seen.seconds)
	}
}

// paced takes in an epoch of a training, alone or beside one other: beside two, it
// is not known which of them is to blame. The lock is held.
func (l *lessons) paced(one growing, seconds float64) {
	kind, other := one.alone(), ""
	if len(one.beside) > 0 {
		companion, known := l.growing[one.beside[0].trial]
		if !known || companion.lease != one.beside[0].lease || len(one.beside) > 1 {
			return
		}
		other = companion.kind
	}
	if gpu := l.gpu(one.gpu); gpu != nil {
		gpu.Ran(kind, other, seconds, one.reported.UTC())
		l.unsaved[lessonName{kind: pacesEntry, gpu: one.gpu}] = true
	}
}

// useOn is what was seen of the trial on the type of GPU.
func (g growing) useOn(gpu string) *trial.GPUUse {
	if g.gpu == gpu {
		return g.use
	}
	return nil
}

// leftGPU forgets what is only of use while the trial may go on.
func (s *Service) leftGPU(id trial.ID) {
	s.gpuLessons.mutex.Lock()
	defer s.gpuLessons.mutex.Unlock()
	delete(s.gpuLessons.growing, id)
}

// gpuUnder is the GPU on which the trial runs; false where it has none, or it is
// not known of which type.
func (s *Service) gpuUnder(t trial.Trial) (onGPU, bool) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	member, _ := s.workers.Member(t.Worker)
	names := member.Registration.Machine.GPUs
	if len(names) == 0 {
		return onGPU{}, false
	}
	if len(t.GPUs) != 1 {
		for _, name := range names {
			if name != names[0] {
				return onGPU{}, false
			}
		}
		return onGPU{name: names[0]}, true
	}
	gpu := t.GPUs[0]
	if gpu < 0 || gpu >= len(names) {
		return onGPU{}, false
	}
	on := onGPU{name: names[gpu], whole: true}
	for _, lease := range s.leases.Of(t.Worker) {
		if lease.Trial != t.ID && slices.Contains(lease.GPUs, gpu) {
			on.beside = append(on.beside, holding{lease.Trial, lease.Epoch})
		}
	}
	slices.SortFunc(on.beside, func(a, b holding) int { return cmp.Compare(a.trial, b.trial) })
	return on, true
}
