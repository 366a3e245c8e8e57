// Package utilization answers: how much of a GPU will a training keep busy, and
// how much of its memory will it hold, before it ever ran?
//
// It is the prediction engine of Yeung, Borowiec, Friday, Harper and Garraghan
// (Towards GPU Utilization Prediction for Cloud Deep Learning, HotCloud 2020,
// section 5): features of the computation graph and the batch ([Describe]), and a
// regression learned from profiles of other trainings ([Train]). The paper has a random
// forest; a Gaussian process does as well on what was recorded, in a tenth of the lines
// (docs/decisions/0026). Its one invariant: the same profiles give the same model, and
// every prediction comes with how far it is usually off. It does no I/O and knows no
// clock.
package utilization

import (
	"fmt"
	"math"
	"math/rand/v2"
)

// Sample is the profile of one training.
type Sample struct {
	Features Features `json:"features"`
	// Family groups architectures of one kind (all ResNets), for splits that
	// keep a family together.
	Family string `json:"family"`
	// Utilization is the share of the time in which the training kept the GPU
	// busy when it ran alone, from 0 to 1; MemoryBytes the most that it held.
	Utilization float64 `json:"utilization"`
	MemoryBytes int64   `json:"memory_bytes"`
}

// Prediction is an estimate for a training that may never have run.
type Prediction struct {
	// Utilization is from 0 to 1; from UtilizationLow to UtilizationHigh is
	// where two of three fall, by how far predictions of what the model did not
	// see were off (one standard deviation of the logarithm).
	Utilization, UtilizationLow, UtilizationHigh float64
	MemoryBytes, MemoryLow, MemoryHigh           int64
}

// Method is how a model predicts.
type Method string

// The process, and the mean that it has to beat.
const (
	Process Method = "Gaussian process"
	Mean    Method = "mean"
)

// leastSamples is how many profiles a model is learned from at least.
const leastSamples = 5

// Train learns from profiles; there have to be at least five.
func Train(samples []Sample, method Method) (*Model, error) {
	if err := check(samples); err != nil {
		return nil, err
	}
	inputs, targets := rows(samples)
	return &Model{Samples: len(samples), utilization: learn(inputs, targets[0], method), memory: learn(inputs, targets[1], method)}, nil
}

func check(samples []Sample) error {
	if len(samples) < leastSamples {
		return fmt.Errorf("%d profiles: at least %d are needed", len(samples), leastSamples)
	}
	for i, one := range samples {
		if !(one.Utilization >= 0 && one.Utilization <= 1) {
			return fmt.Errorf("profile %d: the utilization %g must be a share, from 0 to 1", i, one.Utilization)
		}
		if one.MemoryBytes < 0 {
			return fmt.Errorf("profile %d: it held %d bytes of memory, which cannot be negative", i, one.MemoryBytes)
		}
	}
	return nil
}

// rows are the samples as a regression takes them: the logarithms of which
// RMSLE measures the error, of percent and of megabytes.
func rows(samples []Sample) (inputs [][]float64, targets [2][]float64) {
	for _, one := range samples {
		inputs = append(inputs, one.Features.vector())
		targets[0] = append(targets[0], math.Log1p(percent*one.Utilization))
		targets[1] = append(targets[1], math.Log1p(float64(one.MemoryBytes)/megabyte))
	}
	return inputs, targets
}

const (
	percent  = 100.0
	megabyte = 1e6
)

// Predict is what a training with these features should use.
func (m *Model) Predict(f Features) Prediction {
	x := f.vector()
	share := func(logarithm float64) float64 { return min(max(math.Expm1(logarithm)/percent, 0), 1) }
	bytes := func(logarithm float64) int64 { return int64(min(max(math.Expm1(logarithm)*megabyte, 0), 1e18)) }
	u, off := m.utilization.predict(x)
	p := Prediction{Utilization: share(u), UtilizationLow: share(u - off), UtilizationHigh: share(u + off)}
	b, off := m.memory.predict(x)
	p.MemoryBytes, p.MemoryLow, p.MemoryHigh = bytes(b), bytes(b-off), bytes(b+off)
	return p
}

// folds is how many parts the samples are cut into to see how far predictions of
// what was not seen are off (section 5 has five).
const folds = 5

// learn fits one target, and finds how far it is off on samples that it does not
// see, in the unit of each prediction.
func learn(inputs [][]float64, targets []float64, method Method) regression {
	all := fit(inputs, targets, method)
	square := 0.0
	parts := DrawnParts(len(inputs), 1)
	for fold, out := range parts {
		var in []int
		for other, part := range parts {
			if other != fold {
				in = append(in, part...)
			}
		}
		one := fit(pick(inputs, in), pick(targets, in), method)
		for _, i := range out {
			said, unit := one.say(inputs[i])
			off := said - targets[i]
			square += off * off / unit / unit / float64(len(inputs))
		}
	}
	all.residual = math.Sqrt(square)
	return all
}

// DrawnParts cuts so many samples into five parts at random, as the paper does
// (section 5): the places of each.
func DrawnParts(n int, seed uint64) [][]int {
	parts := make([][]int, min(folds, n))
	for at, i := range rand.New(rand.NewPCG(seed, 3)).Perm(n) { //nolint:gosec // what is drawn has to repeat
		parts[at%len(parts)] = append(parts[at%len(parts)], i)
	}
	return parts
}

func pick[T any](list []T, which []int) []T {
	picked := make([]T, len(which))
	for k, i := range which {
		picked[k] = list[i]
	}
	return picked
}
