package interference

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// NoSlowdown predicts that nothing disturbs.
type NoSlowdown struct{}

// Predict says that both run as alone.
func (NoSlowdown) Predict(a, b Profile) (Colocation, error) {
	if err := checkBoth(a, b); err != nil {
		return Colocation{}, err
	}
	return play(a, b, func(completion [2]float64) (speed, busy [2]float64) {
		return [2]float64{1, 1}, [2]float64{a.at(completion[0]).Utilization, b.at(completion[1]).Utilization}
	}), nil
}

// Sharing predicts that two that want more of the machine than there is each get
// it in proportion, and that there is no other disturbance.
type Sharing struct{}

// Predict shares the machine by utilization.
func (Sharing) Predict(a, b Profile) (Colocation, error) {
	if err := checkBoth(a, b); err != nil {
		return Colocation{}, err
	}
	return play(a, b, func(completion [2]float64) (speed, busy [2]float64) {
		ua, ub := a.at(completion[0]).Utilization, b.at(completion[1]).Utilization
		s := shared(ua, ub)
		return [2]float64{s, s}, [2]float64{s * ua, s * ub}
	}), nil
}

// shared is the speed of two that share a machine in proportion.
func shared(ua, ub float64) float64 { return 1 / max(1, ua+ub) }

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
		if err := pair.check(); err != nil {
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
	if err := checkBoth(a, b); err != nil {
		return Colocation{}, err
	}
	speed := [2]float64{math.Exp(regression.Dot(l.weights, terms(a, b))), math.Exp(regression.Dot(l.weights, terms(b, a)))}
	return play(a, b, func(completion [2]float64) (_, busy [2]float64) {
		return speed, [2]float64{speed[0] * a.at(completion[0]).Utilization, speed[1] * b.at(completion[1]).Utilization}
	}), nil
}
