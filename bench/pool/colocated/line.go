package colocated

import (
	"fmt"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// Line predicts by the server's regression, from what both use in the mean.
type Line struct{ of *interference.Line }

// TrainLine learns from pairs that ran.
func TrainLine(pairs []Pair) (Line, error) {
	var seen []interference.Beside
	for i, pair := range pairs {
		if err := pair.Check(); err != nil {
			return Line{}, fmt.Errorf("pair %d: %w", i, err)
		}
		for k := range pair.Alone {
			seen = append(seen, interference.Beside{Own: pair.Alone[k].mean(), Other: pair.Alone[1-k].mean(), Speed: pair.meanSpeed(k)})
		}
	}
	line, err := interference.TrainLine(seen)
	return Line{line}, err
}

// Predict gives both one speed for as long as they share.
func (l Line) Predict(a, b Profile) (Colocation, error) {
	if err := CheckBoth(a, b); err != nil {
		return Colocation{}, err
	}
	speed := [2]float64{l.of.Speed(a.mean(), b.mean()), l.of.Speed(b.mean(), a.mean())}
	return Play(a, b, func(completion [2]float64) (_, busy [2]float64) {
		return speed, [2]float64{speed[0] * a.At(completion[0]).Utilization, speed[1] * b.At(completion[1]).Utilization}
	}), nil
}
