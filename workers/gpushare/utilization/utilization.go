// Package utilization answers: how much of a GPU will a training keep busy, and
// how much of its memory will it hold, before it ever ran?
//
// It is the prediction engine of Yeung, Borowiec, Friday, Harper and Garraghan
// (Towards GPU Utilization Prediction for Cloud Deep Learning, HotCloud 2020,
// section 5): features of the computation graph and the batch ([Describe]), and
// a random forest learned from profiles of other trainings ([Train]), one of the
// methods of table 3. Its one invariant:
// the same profiles and seed give the same model on every machine, and every
// prediction comes with how far it is usually off. It does no I/O and knows no
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

// The forest of table 3, and the mean that it has to beat.
const (
	Forest = "forest"
	Mean   = "mean"
)

// Settings of [Train]. The zero value is a random forest.
type Settings struct {
	// Method is Forest where it is empty.
	Method string `json:"method"`
	// Trees is how many a forest has (200 when 0); Depth how many splits are above
	// a leaf at most (12); Leaf the fewest samples of one (1).
	Trees int    `json:"trees,omitempty"`
	Depth int    `json:"depth,omitempty"`
	Leaf  int    `json:"leaf,omitempty"`
	Seed  uint64 `json:"seed"`
}

func (s Settings) complete() (Settings, error) {
	if s.Method == "" {
		s.Method = Forest
	}
	if s.Method != Forest && s.Method != Mean {
		return s, fmt.Errorf("the method %q is neither %s nor %s", s.Method, Forest, Mean)
	}
	if s.Trees < 0 || s.Depth < 0 || s.Leaf < 0 {
		return s, fmt.Errorf("trees %d, depth %d, leaf %d: none may be negative", s.Trees, s.Depth, s.Leaf)
	}
	for value, standard := range map[*int]int{&s.Trees: 200, &s.Depth: 12, &s.Leaf: 1} {
		if *value == 0 {
			*value = standard
		}
	}
	return s, nil
}

// leastSamples is how many profiles a model is learned from at least.
const leastSamples = 5

// Train learns from profiles; there have to be at least five.
func Train(samples []Sample, settings Settings) (*Model, error) {
	settings, err := settings.complete()
	if err != nil {
		return nil, err
	}
	if err := check(samples); err != nil {
		return nil, err
	}
	m := &Model{Version: version, Settings: settings, Samples: len(samples)}
	inputs, targets := rows(samples)
	if m.Utilization, err = learn(inputs, targets[0], settings); err != nil {
		return nil, err
	}
	m.Memory, err = learn(inputs, targets[1], settings)
	return m, err
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
	u, off := m.Utilization.predict(x)
	p := Prediction{Utilization: share(u), UtilizationLow: share(u - off), UtilizationHigh: share(u + off)}
	b, off := m.Memory.predict(x)
	p.MemoryBytes, p.MemoryLow, p.MemoryHigh = bytes(b), bytes(b-off), bytes(b+off)
	return p
}

// folds is how many parts the samples are cut into to see how far predictions of
// what was not seen are off (section 5 has five).
const folds = 5

// learn fits one target, and finds how far it is off on samples that it does not
// see.
func learn(inputs [][]float64, targets []float64, settings Settings) (Regression, error) {
	all := fit(inputs, targets, settings)
	_, all.Residual = crossValidate(inputs, targets, settings)
	if !all.finite() {
		return all, fmt.Errorf("the regression did not come to finite weights from %d profiles", len(inputs))
	}
	return all, nil
}

// crossValidate predicts each part from the others: the root of the mean squared
// error, and that in the unit of each prediction.
func crossValidate(inputs [][]float64, targets []float64, settings Settings) (plain, inUnits float64) {
	parts := DrawnParts(len(inputs), settings.Seed)
	for fold, out := range parts {
		var in []int
		for other, part := range parts {
			if other != fold {
				in = append(in, part...)
			}
		}
		one := fit(pick(inputs, in), pick(targets, in), settings)
		for _, i := range out {
			said, unit := one.say(inputs[i])
			off := said - targets[i]
			plain += off * off / float64(len(inputs))
			inUnits += off * off / unit / unit / float64(len(inputs))
		}
	}
	return math.Sqrt(plain), math.Sqrt(inUnits)
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
