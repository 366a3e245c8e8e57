// Package interference answers: if two trainings share a machine, how much slower does
// each become?
//
// A linear regression ([Line]) predicts that from what each uses alone; where nothing
// but speeds of pairs is known, [Factors] completes the table. What it is compared with,
// networks over time among that, is in bench/pool/colocated. It does no I/O and knows no
// clock.
package interference

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Use is what a training uses of the machine (a GPU, or its cores) in the mean.
type Use struct {
	// Utilization is the share of the machine that it keeps busy, from 0 to 1.
	Utilization float64
	MemoryBytes float64
}

// Beside is how fast a training was beside another, of its speed alone: above 0.
type Beside struct {
	Own, Other Use
	Speed      float64
}

// Line is a linear regression of the logarithm of a training's speed beside another,
// on what both use.
type Line struct {
	weights []float64
}

// terms are what the regression sees of one training beside another.
func terms(own, other Use) []float64 {
	return []float64{
		1, own.Utilization, other.Utilization, own.Utilization * other.Utilization, max(0, own.Utilization+other.Utilization-1),
		math.Log1p(own.MemoryBytes / gigabyte), math.Log1p(other.MemoryBytes / gigabyte),
	}
}

const (
	gigabyte = 1e9
	// ridge is the weight of the belief that a term changes nothing, in pairs.
	ridge = 0.01
	// slowest and fastest bound a speed, in parts of that alone.
	slowest, fastest = 0.05, 100.0
)

// TrainLine learns from speeds that were seen.
func TrainLine(seen []Beside) (*Line, error) {
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
	return &Line{weights: regression.FitRidge(inputs, values, ridge)}, nil
}

// Speed is how fast one training should be beside another.
func (l *Line) Speed(own, other Use) float64 {
	return min(max(math.Exp(regression.Dot(l.weights, terms(own, other))), slowest), fastest)
}
