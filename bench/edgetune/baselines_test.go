package main

import (
	"math"
	"testing"
)

// TestBaselinesLearn: both regressions learn what they can express, and go on from it for a
// device that is twice as slow where its first feature is large.
func TestBaselinesLearn(t *testing.T) {
	t.Parallel()
	step := func(x float64) float64 {
		if x > 3 {
			return math.Log(2)
		}
		return 0
	}
	var taught, device []features
	for i := range 200 {
		x := []float64{float64(i % 10), float64(i / 10), 7}
		taught = append(taught, features{x, 0.3*x[0] + 0.1*x[1]})
		device = append(device, features{x, 0.3*x[0] + 0.1*x[1] + step(x[0])})
	}
	shown, asked := device[:100], device[100:]
	straight, trees := newStraight(taught), boost(nil, taught, 200, 8)
	for name, c := range map[string]struct {
		value func([]float64) float64
		of    []features
		most  float64
	}{
		"a line of what was taught":     {straight.value, taught, 0.02},
		"a line without measurements":   {straight.shown(nil), taught, 0.02},
		"trees of what was taught":      {trees.value, taught, 0.2},
		"trees without measurements":    {boost(trees, nil, 50, 2).value, taught, 0.2},
		"trees of the device":           {boost(trees, shown, 50, 2).value, asked, 0.25},
		"a line of the device, in part": {straight.shown(shown), asked, 0.35},
	} {
		worst := 0.0
		for _, one := range c.of {
			worst = max(worst, math.Abs(c.value(one.x)-one.y))
		}
		if worst > c.most {
			t.Errorf("%s: off by %.3f", name, worst)
		}
	}
	if worst := math.Abs(trees.value(asked[9].x) - asked[9].y); worst < 0.5 {
		t.Errorf("without the device's measurements the trees are off by %.3f only", worst)
	}
}
