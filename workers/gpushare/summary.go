package gpushare

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// mostGPUsShown is for how many types of GPU a trial's use is predicted at once.
const mostGPUsShown = 8

// Predict is what the trial should use of each of the types of GPU, by its architecture
// and what was learned of others there; nil where there are no types.
func (m *Model) Predict(ctx context.Context, of Study, t trial.Trial, types []string) *protocol.GPUExpected {
	if len(types) == 0 {
		return nil
	}
	answer := &protocol.GPUExpected{BatchSize: batchOf(t.Configuration), GPUs: []protocol.GPUEstimate{}}
	answer.Architecture, answer.Basis = m.architecture(ctx, of, t)
	for _, gpu := range types[:min(len(types), mostGPUsShown)] {
		answer.GPUs = append(answer.GPUs, m.predict(ctx, answer, gpu))
	}
	return answer
}

// predict is what the training should use of the type of GPU. Where that cannot be said,
// Reason says why.
func (m *Model) predict(ctx context.Context, of *protocol.GPUExpected, gpu string) protocol.GPUEstimate {
	answer := protocol.GPUEstimate{GPU: gpu}
	if of.Architecture == "" {
		answer.Reason = of.Basis
		return answer
	}
	features, described := m.features(ctx, of.Architecture, of.BatchSize)
	if !described {
		answer.Reason = "its architecture is not kept any more: so many newer ones were seen"
		return answer
	}
	m.mutex.Lock()
	defer m.mutex.Unlock()
	known := m.gpus[gpu]
	if known == nil {
		known = &GPU{}
	}
	said, verdict, err := known.Expect(features, of.Architecture)
	if err != nil {
		answer.Reason = err.Error()
		return answer
	}
	learned := known.Learned()
	answer.Utilization, answer.UtilizationLow, answer.UtilizationHigh = said.Utilization, said.UtilizationLow, said.UtilizationHigh
	answer.MemoryBytes, answer.MemoryLow, answer.MemoryHigh = said.MemoryBytes, said.MemoryLow, said.MemoryHigh
	answer.Trainings, answer.UtilizationOff, answer.MemoryOff = learned.Model.Samples, verdict.Off, verdict.MemoryOff
	answer.Unseen = !learned.Knows(of.Architecture)
	return answer
}

// Summary is what was learned on each type of GPU.
func (m *Model) Summary() []protocol.PoolGPUModel {
	models := []protocol.PoolGPUModel{}
	for _, name := range m.types() {
		m.mutex.Lock()
		models = append(models, summaryOf(name, m.gpus[name]))
		m.mutex.Unlock()
	}
	return models
}

func summaryOf(name string, gpu *GPU) protocol.PoolGPUModel {
	one := protocol.PoolGPUModel{GPU: name, Reason: gpu.Reason(), Pairs: gpu.Pairs()}
	one.Trainings, one.Architectures = gpu.Count()
	if learned := gpu.Learned(); learned != nil {
		one.LearnedFrom = learned.Model.Samples
		one.Known = &protocol.GPUErrors{Utilization: learned.BySample.Off, Memory: learned.BySample.MemoryOff, RMSLE: learned.BySample.Utilization}
		one.UnseenReason = learned.Unlike
		if v := learned.ByFamily; v != nil {
			one.Unseen = &protocol.GPUErrors{Utilization: v.Off, Memory: v.MemoryOff, RMSLE: v.Utilization}
		}
	}
	return one
}
