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
	// Utilization is the RMSLE in percent.
	Utilization float64
	// Off is by how much the share of the time was wrong, and MemoryOff by how
	// much the memory, in parts of what it was: for half of the trainings by no
	// more than that.
	Off       float64
	MemoryOff float64
}

// Hide predicts each part of the samples, by their places, with what was trained
// on the rest, and tells each sample with its prediction.
func Hide(samples []Sample, parts [][]int, train func([]Sample) (*Model, error), tell func(was Sample, said Prediction)) error {
	for _, part := range parts {
		var rest []Sample
		for i, one := range samples {
			if !slices.Contains(part, i) {
				rest = append(rest, one)
			}
		}
		m, err := train(rest)
		if err != nil {
			return err
		}
		for _, i := range part {
			tell(samples[i], m.Predict(samples[i].Features))
		}
	}
	return nil
}

// judge is how well each part is predicted with what was trained on the rest.
func judge(samples []Sample, parts [][]int, train func([]Sample) (*Model, error)) (Verdict, error) {
	var said, was, off, memoryOff []float64
	err := Hide(samples, parts, train, func(one Sample, p Prediction) {
		said, was = append(said, percent*p.Utilization), append(was, percent*one.Utilization)
		off = append(off, math.Abs(p.Utilization-one.Utilization))
		memoryOff = append(memoryOff, math.Abs(float64(p.MemoryBytes-one.MemoryBytes))/float64(max(1, one.MemoryBytes)))
	})
	if err != nil {
		return Verdict{}, err
	}
	return Verdict{RMSLE(said, was), median(off), median(memoryOff)}, nil
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
