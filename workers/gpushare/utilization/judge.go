package utilization

import (
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
	Utilization float64
	Memory      float64
	// Off is by how much the share of the time was wrong, and MemoryOff by how
	// much the memory, in parts of what it was: for half of the trainings by no
	// more than that.
	Off       float64
	MemoryOff float64
	// Under is the share of trainings that were predicted to use less than they
	// do, by more than a tenth: these would be packed too tightly.
	Under float64
	// Covered is the share whose utilization lies within the prediction's band.
	Covered float64
}

// Judge predicts each part of the samples, by their places, with what was trained
// on the rest.
func Judge(samples []Sample, parts [][]int, train func([]Sample) (*Model, error)) (Verdict, error) {
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

// Families are the places of the samples of each family, in the order in which
// they first come.
func Families(samples []Sample) (parts [][]int) {
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
