package interference

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Line is a linear regression of the logarithm of a training's mean speed beside
// another, on what both use in the mean.
type Line struct {
	weights []float64
}

// terms are what the regression sees of one training beside another.
func terms(own, other Profile) []float64 {
	a, b := own.mean(), other.mean()
	return []float64{
		1, a.Utilization, b.Utilization, a.Utilization * b.Utilization, max(0, a.Utilization+b.Utilization-1),
		math.Log1p(a.MemoryBytes / gigabyte), math.Log1p(b.MemoryBytes / gigabyte),
	}
}

const (
	gigabyte = 1e9
	// ridge is the weight of the belief that a term changes nothing, in pairs.
	ridge = 0.01
)

// TrainLine learns from pairs that ran.
func TrainLine(pairs []Pair) (*Line, error) {
	if len(pairs) == 0 {
		return nil, fmt.Errorf("no pairs to learn from")
	}
	var inputs [][]float64
	var values []float64
	for i, pair := range pairs {
		if err := pair.Check(); err != nil {
			return nil, fmt.Errorf("pair %d: %w", i, err)
		}
		for k := range pair.Alone {
			inputs = append(inputs, terms(pair.Alone[k], pair.Alone[1-k]))
			values = append(values, math.Log(pair.meanSpeed(k)))
		}
	}
	return &Line{weights: regression.FitRidge(inputs, values, ridge)}, nil
}

// Predict gives both one speed for as long as they share.
func (l *Line) Predict(a, b Profile) (Colocation, error) {
	if err := CheckBoth(a, b); err != nil {
		return Colocation{}, err
	}
	speed := [2]float64{math.Exp(regression.Dot(l.weights, terms(a, b))), math.Exp(regression.Dot(l.weights, terms(b, a)))}
	return Play(a, b, func(completion [2]float64) (_, busy [2]float64) {
		return speed, [2]float64{speed[0] * a.At(completion[0]).Utilization, speed[1] * b.At(completion[1]).Utilization}
	}), nil
}
