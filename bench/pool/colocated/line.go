package colocated

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Line predicts by a linear regression, from what both use in the mean.
type Line struct{ of *regressed }

// TrainLine learns from pairs that ran.
func TrainLine(pairs []Pair) (Line, error) {
	var seen []beside
	for i, pair := range pairs {
		if err := pair.Check(); err != nil {
			return Line{}, fmt.Errorf("pair %d: %w", i, err)
		}
		for k := range pair.Alone {
			seen = append(seen, beside{Own: pair.Alone[k].mean(), Other: pair.Alone[1-k].mean(), Speed: pair.meanSpeed(k)})
		}
	}
	line, err := regress(seen)
	return Line{line}, err
}

// Predict gives both one speed for as long as they share.
func (l Line) Predict(a, b Profile) (Colocation, error) {
	if err := CheckBoth(a, b); err != nil {
		return Colocation{}, err
	}
	speed := [2]float64{l.of.speed(a.mean(), b.mean()), l.of.speed(b.mean(), a.mean())}
	return Play(a, b, func(completion [2]float64) (_, busy [2]float64) {
		return speed, [2]float64{speed[0] * a.At(completion[0]).Utilization, speed[1] * b.At(completion[1]).Utilization}
	}), nil
}

// use is what a training uses of the machine (a GPU, or its cores) in the mean.
type use struct {
	// Utilization is the share of the machine that it keeps busy, from 0 to 1.
	Utilization float64
	MemoryBytes float64
}

// beside is how fast a training was beside another, of its speed alone: above 0.
type beside struct {
	Own, Other use
	Speed      float64
}

// regressed is a linear regression of the logarithm of a training's speed beside another,
// on what both use.
type regressed struct {
	weights []float64
}

// terms are what the regression sees of one training beside another.
func terms(own, other use) []float64 {
	return []float64{
		1, own.Utilization, other.Utilization, own.Utilization * other.Utilization, max(0, own.Utilization+other.Utilization-1),
		math.Log1p(own.MemoryBytes / gigabyte), math.Log1p(other.MemoryBytes / gigabyte),
	}
}

// ridge is the weight of the belief that a term changes nothing, in pairs.
const ridge = 0.01

// regress learns from speeds that were seen.
func regress(seen []beside) (*regressed, error) {
	if len(seen) == 0 {
		return nil, fmt.Errorf("no pairs to learn from")
	}
	var inputs [][]float64
	var values []float64
	for i, one := range seen {
		if !(one.Speed > 0) || math.IsInf(one.Speed, 0) {
			return nil, fmt.Errorf("pair %d has the speed %g: it must be above 0", i, one.Speed)
		}
		inputs, values = append(inputs, terms(one.Own, one.Other)), append(values, math.Log(max(one.Speed, slowest)))
	}
	return &regressed{weights: regression.FitRidge(inputs, values, ridge)}, nil
}

// speed is how fast one training should be beside another.
func (l *regressed) speed(own, other use) float64 {
	return min(max(math.Exp(regression.Dot(l.weights, terms(own, other))), slowest), fastest)
}
