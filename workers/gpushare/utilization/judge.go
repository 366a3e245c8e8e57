package utilization

import (
	"fmt"
	"math"
	"slices"
)

// RMSLE is the root mean squared error of logarithms, of 1 added to each value
// (table 3). Utilizations are in percent there: of shares, whose logarithms
// hardly differ, it would always be small.
func RMSLE(predicted, actual []float64) float64 {
	squares := 0.0
	for i, p := range predicted {
		off := math.Log1p(p) - math.Log1p(actual[i])
		squares += off * off / float64(len(predicted))
	}
	return math.Sqrt(squares)
}

// Verdict is how well trainings are predicted that a model did not see.
type Verdict struct {
	// Utilization is the RMSLE in percent, Memory that in megabytes.
	Utilization float64 `json:"utilization"`
	Memory      float64 `json:"memory"`
	// Off is by how much the share of the time was wrong, and MemoryOff by how
	// much the memory, in parts of what it was: for half of the trainings by no
	// more than that.
	Off       float64 `json:"off"`
	MemoryOff float64 `json:"memory_off"`
	// Under is the share of trainings that were predicted to use less than they
	// do, by more than a tenth: these would be packed too tightly.
	Under float64 `json:"under"`
	// Covered is the share whose utilization lies within the prediction's band.
	Covered float64 `json:"covered"`
}

// Splits of [Judge].
const (
	// BySample hides a fifth of the trainings in turn, as the paper does.
	BySample = "sample"
	// ByFamily hides one family of architectures in turn: what is predicted is
	// of a kind that was never seen (section 8 leaves it open).
	ByFamily = "family"
)

// Judge trains on parts of the samples and predicts the rest, so that each is
// predicted once.
func Judge(samples []Sample, settings Settings, by string) (Verdict, error) {
	parts, err := hidden(samples, by, settings.Seed)
	if err != nil {
		return Verdict{}, err
	}
	return judge(samples, parts, func(rest []Sample) (*Model, error) { return Train(rest, settings) })
}

// judge predicts each part with what was trained on the rest.
func judge(samples []Sample, parts [][]int, train func([]Sample) (*Model, error)) (Verdict, error) {
	var v Verdict
	var said, was [2][]float64
	var off, memoryOff []float64
	for _, part := range parts {
		var rest []Sample
		for i, one := range samples {
			if !slices.Contains(part, i) {
				rest = append(rest, one)
			}
		}
		m, err := train(rest)
		if err != nil {
			return v, err
		}
		for _, i := range part {
			one, p := samples[i], m.Predict(samples[i].Features)
			said[0], was[0] = append(said[0], percent*p.Utilization), append(was[0], percent*one.Utilization)
			said[1], was[1] = append(said[1], float64(p.MemoryBytes)/megabyte), append(was[1], float64(one.MemoryBytes)/megabyte)
			off = append(off, math.Abs(p.Utilization-one.Utilization))
			memoryOff = append(memoryOff, math.Abs(float64(p.MemoryBytes-one.MemoryBytes))/float64(max(1, one.MemoryBytes)))
			if p.Utilization < 0.9*one.Utilization {
				v.Under += 1 / float64(len(samples))
			}
			if p.UtilizationLow <= one.Utilization && one.Utilization <= p.UtilizationHigh {
				v.Covered += 1 / float64(len(samples))
			}
		}
	}
	v.Utilization, v.Memory = RMSLE(said[0], was[0]), RMSLE(said[1], was[1])
	v.Off, v.MemoryOff = median(off), median(memoryOff)
	return v, nil
}

func median(values []float64) float64 {
	slices.Sort(values)
	return values[len(values)/2]
}

// hidden are the places of the samples that are predicted together.
func hidden(samples []Sample, by string, seed uint64) (parts [][]int, err error) {
	switch by {
	case BySample:
		parts = drawnParts(len(samples), seed)
	case ByFamily:
		if parts = families(samples); len(parts) < 2 {
			return nil, fmt.Errorf("all %d profiles are of one family: none can be hidden", len(samples))
		}
	default:
		return nil, fmt.Errorf("samples cannot be split by %q: %s or %s", by, BySample, ByFamily)
	}
	return parts, nil
}

// families are the places of the samples of each family, in the order in which
// they first come.
func families(samples []Sample) (parts [][]int) {
	place := map[string]int{}
	for i, one := range samples {
		at, known := place[one.Family]
		if !known {
			at = len(parts)
			place[one.Family], parts = at, append(parts, nil)
		}
		parts[at] = append(parts[at], i)
	}
	return parts
}

// Tune returns the settings with which trainings are predicted best that were
// not seen, of a method: section 5's grid of the number and depth of trees.
func Tune(samples []Sample, method string, seed uint64) (Settings, error) {
	if err := check(samples); err != nil {
		return Settings{}, err
	}
	inputs, targets := rows(samples)
	best, least := Settings{Method: method, Seed: seed}, math.Inf(1)
	for _, one := range grid(method) {
		one.Seed = seed
		one, err := one.complete()
		if err != nil {
			return best, err
		}
		if off, _ := crossValidate(inputs, targets[0], one); off < least {
			best, least = one, off
		}
	}
	return best, nil
}

func grid(method string) (list []Settings) {
	switch method {
	case Forest:
		for _, depth := range []int{4, 8, 16} {
			for _, leaf := range []int{1, 2, 4} {
				list = append(list, Settings{Method: Forest, Trees: 100, Depth: depth, Leaf: leaf})
			}
		}
	case Boosting:
		for _, trees := range []int{50, 150, 400} {
			for _, depth := range []int{2, 3, 5} {
				list = append(list, Settings{Method: Boosting, Trees: trees, Depth: depth})
			}
		}
	default:
		list = []Settings{{Method: method}}
	}
	return list
}
