package study

import (
	"context"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/experience"
)

// mostGPUsShown is for how many types of GPU a trial's use is predicted at once.
const mostGPUsShown = 8

// predicted is what the trial should use of the type of GPU, by its architecture
// and what was learned of others there. Where that cannot be said, Reason says why.
func (s *Service) predicted(ctx context.Context, r *session, t trial.Trial, gpu string) protocol.GPUEstimate {
	answer := protocol.GPUEstimate{GPU: gpu}
	key, how := s.architectureOf(ctx, r, t)
	if key == "" {
		answer.Reason = how
		return answer
	}
	features, told := s.described(ctx, key, batchOf(t.Configuration))
	if !told {
		answer.Reason = "its architecture is not kept any more: so many newer ones were seen"
		return answer
	}
	l := s.gpuLessons
	l.mutex.Lock()
	defer l.mutex.Unlock()
	known := l.gpus[gpu]
	if known == nil {
		known = &experience.GPU{}
	}
	said, verdict, err := known.Expect(features, key)
	if err != nil {
		answer.Reason = err.Error()
		return answer
	}
	learned := known.Learned()
	answer.Utilization, answer.UtilizationLow, answer.UtilizationHigh = said.Utilization, said.UtilizationLow, said.UtilizationHigh
	answer.MemoryBytes, answer.MemoryLow, answer.MemoryHigh = said.MemoryBytes, said.MemoryLow, said.MemoryHigh
	answer.Trainings, answer.UtilizationOff, answer.MemoryOff = learned.Model.Samples, verdict.Off, verdict.MemoryOff
	answer.Unseen = !learned.Knows(key)
	return answer
}

// gpuExpected is what the trial should use of the GPU that it is on, or else of
// those of the workers that are connected; nil where there are none. The study's
// lock is held.
func (s *Service) gpuExpected(ctx context.Context, r *session, t trial.Trial) *protocol.GPUExpected {
	if callerOf(ctx).Sight == Shared {
		return nil // who came by a link hears nothing of workers
	}
	types := s.gpuTypes()
	if on, known := s.gpuUnder(t); known && t.State.Held() {
		types = []string{on.name}
	}
	if len(types) == 0 {
		return nil
	}
	answer := &protocol.GPUExpected{BatchSize: batchOf(t.Configuration), GPUs: []protocol.GPUEstimate{}}
	answer.Architecture, answer.Basis = s.architectureOf(ctx, r, t)
	for _, gpu := range types[:min(len(types), mostGPUsShown)] {
		answer.GPUs = append(answer.GPUs, s.predicted(ctx, r, t, gpu))
	}
	return answer
}

// gpuTypes are the types of GPU of the workers that are heard of, sorted.
func (s *Service) gpuTypes() []string {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	return s.connectedGPUs()
}

// connectedGPUs is gpuTypes for who holds the pool's lock.
func (s *Service) connectedGPUs() []string {
	now := s.options.Now()
	types := map[string]bool{}
	for member := range s.workers.All() {
		if now.Sub(member.LastSeen) < s.leaseTerm() {
			for _, name := range member.Registration.Machine.GPUs {
				types[name] = true
			}
		}
	}
	return slices.Sorted(maps.Keys(types))
}

// mostColumnsShown is how many of the columns that decide are named.
const mostColumnsShown = 5

// gpuModels is what was learned on each type of GPU.
func (s *Service) gpuModels() []protocol.PoolGPUModel {
	models := []protocol.PoolGPUModel{}
	l := s.gpuLessons
	for _, name := range l.names() {
		l.mutex.Lock()
		models = append(models, gpuModel(name, l.gpus[name]))
		l.mutex.Unlock()
	}
	return models
}

func gpuModel(name string, gpu *experience.GPU) protocol.PoolGPUModel {
	one := protocol.PoolGPUModel{GPU: name, Reason: gpu.Reason()}
	one.Trainings, one.Architectures = gpu.Count()
	if learned := gpu.Learned(); learned != nil {
		one.LearnedFrom = learned.Model.Samples
		one.Known = errorsOf(learned.BySample.Off, learned.BySample.MemoryOff, learned.BySample.Utilization)
		one.UnseenReason = learned.Unlike
		if v := learned.ByFamily; v != nil {
			one.Unseen = errorsOf(v.Off, v.MemoryOff, v.Utilization)
		}
		for _, column := range learned.Model.Importances()[:mostColumnsShown] {
			one.Importances = append(one.Importances, protocol.GPUImportance{Feature: column.Name, Share: column.Share})
		}
	}
	told := gpu.Told()
	one.Pairs = protocol.PoolGPUPairs{Kinds: told.Kinds, Seen: told.Seen, Reason: told.Reason}
	for _, basis := range told.Learned {
		one.Pairs.Learned = append(one.Pairs.Learned, protocol.GPUPairModel{Basis: basis.Basis, Pairs: basis.Pairs, Off: basis.Off, PlainOff: basis.PlainOff})
	}
	return one
}

func errorsOf(utilization, memory, rmsle float64) *protocol.GPUErrors {
	return &protocol.GPUErrors{Utilization: utilization, Memory: memory, RMSLE: rmsle}
}
