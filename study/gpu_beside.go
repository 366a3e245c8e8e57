package study

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/experience"
)

// foresee gets ready what is asked of a study's trials while locks are held under
// which nothing may be read: what they train. The study's lock is held.
func (s *Service) foresee(ctx context.Context, r *session) {
	if !r.study.Definition.SharesGPUs() || !s.gpuLessons.any() {
		return
	}
	if r.designs == nil {
		s.architectureOf(ctx, r, trial.Trial{})
	}
	if r.designs.looked {
		return
	}
	r.designs.looked = true
	for _, key := range r.designs.known {
		s.described(ctx, key, 1)
	}
}

// any reports whether a model of any type of GPU was learned.
func (l *lessons) any() bool {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	for _, gpu := range l.gpus {
		if gpu.Learned() != nil {
			return true
		}
	}
	return false
}

// noteGPUTypes notes which types of GPU there are. The pool's lock is held.
func (s *Service) noteGPUTypes() {
	types := s.connectedGPUs()
	s.gpuLessons.mutex.Lock()
	defer s.gpuLessons.mutex.Unlock()
	s.gpuLessons.connected = types
}

// designed is what the trial trains, as far as it is at hand; empty where it is not.
func (r *session) designed(t trial.Trial) string {
	if t.Inference != nil && t.Inference.Architecture != "" {
		return t.Inference.Architecture
	}
	if r.designs == nil {
		return ""
	}
	key, _ := r.designs.architecture(t.Configuration)
	return key
}

// foretold is what the models that were learned tell of the trial, on whatever GPU
// it comes to: the most of all types that are connected, and of each the upper end
// of where two of three trainings fall. False where one of them tells nothing.
// Nothing is read, and no lock is taken but that of the lessons, which is the last.
func (s *Service) foretold(r *session, t trial.Trial) (expectation, bool) {
	key := r.designed(t)
	if key == "" {
		return expectation{}, false
	}
	l := s.gpuLessons
	l.mutex.Lock()
	defer l.mutex.Unlock()
	outline, known := l.outlines[key]
	if !known || len(l.connected) == 0 {
		return expectation{}, false
	}
	features := outline.With(batchOf(t.Configuration))
	one := expectation{}
	for _, name := range l.connected {
		gpu := l.gpus[name]
		if gpu == nil {
			return expectation{}, false
		}
		said, verdict, err := gpu.Expect(features, key)
		if err != nil {
			return expectation{}, false
		}
		if said.UtilizationHigh >= one.utilization {
			one.basis = fmt.Sprintf("by its architecture, from %d trainings on an %s, usually off by %.2f and %.0f %% of the memory", gpu.Learned().Model.Samples, name, verdict.Off, 100*verdict.MemoryOff)
		}
		one.utilization, one.memoryBytes = max(one.utilization, said.UtilizationHigh), max(one.memoryBytes, said.MemoryHigh)
	}
	return one, true
}

// disturbed is that a study's trial was kept from a GPU by who runs there.
type disturbed struct {
	why string
	at  time.Time
}

// apart says beside which trials the trial must not run, and why: where both together would
// do less than one after the other, by what was seen of such two, or learned of
// others. Where nothing is known, nothing is refused. It takes no lock but that of
// the lessons.
func (s *Service) apart(r *session, t trial.Trial, uses expectation) func(trial.ID) (why string) {
	own := experience.Alone{Kind: kindOf(r.id, r.designed(t), batchOf(t.Configuration)), Utilization: max(0, uses.utilization), MemoryBytes: float64(uses.memoryBytes)}
	return func(resident trial.ID) string {
		said, known := s.beside(own, resident)
		if !known || !said.Loses() {
			return ""
		}
		why := fmt.Sprintf("beside %s it would lose: %s", r.called(resident), said)
		s.gpuLessons.mutex.Lock()
		defer s.gpuLessons.mutex.Unlock()
		if len(s.gpuLessons.disturbed) >= mostGrowing {
			clear(s.gpuLessons.disturbed)
		}
		s.gpuLessons.disturbed[r.id] = disturbed{why, s.options.Now()}
		return why
	}
}

// together is how good it is that the trial runs beside another: how much both do,
// in parts of what one does alone.
func (s *Service) together(r *session, t trial.Trial, uses expectation) func(trial.ID) float64 {
	own := experience.Alone{Kind: kindOf(r.id, r.designed(t), batchOf(t.Configuration)), Utilization: max(0, uses.utilization), MemoryBytes: float64(uses.memoryBytes)}
	return func(resident trial.ID) float64 {
		if said, known := s.beside(own, resident); known {
			return said.Gain()
		}
		s.gpuLessons.mutex.Lock()
		other := s.gpuLessons.growing[resident].alone()
		s.gpuLessons.mutex.Unlock()
		return 2 / max(1, own.Utilization+other.Utilization) // each gets its part of what there is
	}
}

// beside is how fast a training should be beside a trial that runs on a GPU.
func (s *Service) beside(own experience.Alone, resident trial.ID) (experience.Beside, bool) {
	l := s.gpuLessons
	l.mutex.Lock()
	defer l.mutex.Unlock()
	there, known := l.growing[resident]
	gpu := l.gpus[there.gpu]
	if !known || gpu == nil {
		return experience.Beside{}, false
	}
	return gpu.Beside(own, there.alone())
}

// alone is the kind of training, with what it was seen to use or should use.
func (g growing) alone() experience.Alone {
	one := experience.Alone{Kind: g.kind, Utilization: g.expected.Utilization, MemoryBytes: g.expected.MemoryBytes}
	if use := g.use; use != nil && use.Alone && use.Seconds > 0 {
		one.Utilization, one.MemoryBytes = use.Utilization, float64(use.MemoryBytes)
	}
	return one
}

// called is how a trial is called to who sees the study: others' have no names.
func (r *session) called(id trial.ID) string {
	study, number := studyOf(id)
	if study == r.id {
		return fmt.Sprintf("trial %d", number)
	}
	return "a trial of another study"
}

// keptApart says who keeps the study's next trial from a GPU; empty where nobody
// does, or did for the term of a lease.
func (s *Service) keptApart(study string) string {
	s.gpuLessons.mutex.Lock()
	defer s.gpuLessons.mutex.Unlock()
	one, known := s.gpuLessons.disturbed[study]
	if !known || s.options.Now().Sub(one.at) > s.leaseTerm() {
		return ""
	}
	return "; " + one.why
}

// beganOnGPU notes what begins on which GPU: who comes next is told beside whom it
// would run. The study's lock is held.
func (s *Service) beganOnGPU(r *session, t trial.Trial) {
	on, known := s.gpuUnder(t)
	l := s.gpuLessons
	l.mutex.Lock()
	defer l.mutex.Unlock()
	delete(l.disturbed, r.id)
	if !known || len(t.GPUs) > 1 {
		return
	}
	one := growing{gpu: on.name, lease: t.LeaseEpoch, use: l.growing[t.ID].useOn(on.name), kind: kindOf(r.id, r.designed(t), batchOf(t.Configuration))}
	if share := t.GPUShare; share != nil && !share.Alone {
		one.expected = experience.Alone{Utilization: share.Utilization, MemoryBytes: float64(share.MemoryBytes)}
	}
	l.keep(t.ID, one)
}
