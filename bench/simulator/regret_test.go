package simulator_test

import (
	"fmt"
	"math"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile"
)

// regretStudy is one of two numbers without a ladder.
func regretStudy(t *testing.T, direction string, regret float64, seed int) definition.Definition {
	t.Helper()
	def, err := studyfile.Parse(fmt.Appendf(nil, `
name: example
command: [train]
objective: {metric: score, direction: %s}
space: {x: {type: float, low: 0, high: 1}, y: {type: float, low: 0, high: 1}}
budget: {epochs: 1}
search: {method: gp, promotion: none, seed: %d}
stop: {trials: 60, regret: %g}
`, direction, seed, regret), studyfile.YAML)
	if err != nil {
		t.Fatal(err)
	}
	return def
}

func surface(value func(x, y float64) float64) measure {
	return func(c space.Configuration, _ int, _ float64) simulator.Measurement {
		x, _ := c["x"].Number()
		y, _ := c["y"].Number()
		return simulator.Measurement{Value: value(x, y), Seconds: 10}
	}
}

// A smooth hill is soon known well enough, and the study then ends near its
// top, whichever way is better; but never before there are enough results.
func TestAStudyEndsWhenLittleIsLeftToGain(t *testing.T) {
	hill := func(x, y float64) float64 { return 1 - (x-0.7)*(x-0.7) - (y-0.2)*(y-0.2) }
	for direction, sign := range map[string]float64{"maximize": 1, "minimize": -1} {
		for seed := 1; seed <= 4; seed++ {
			trace := run(t, regretStudy(t, direction, 0.01, seed), surface(func(x, y float64) float64 { return sign * hill(x, y) }), simulator.Options{Workers: 2})
			view := trace.Study
			if view.Status != protocol.StudyCompleted || !strings.Contains(view.Reason, "of score is left to gain") || !strings.Contains(view.Reason, "an estimate") {
				t.Fatalf("%s, seed %d: %s, %s", direction, seed, view.Status, view.Reason)
			}
			if n := view.Progress.Created; n < 9 || n > 50 {
				t.Errorf("%s, seed %d: ended with %d trials", direction, seed, n)
			}
			if left := 1 - sign*float64(trace.Recommendation.Best.Value); left > 0.01 {
				t.Errorf("%s, seed %d: the answer is %v away from the best", direction, seed, left)
			}
			bound := view.Progress.RegretBound
			if bound == nil || float64(bound.Value) >= 0.01 || bound.Threshold != 0.01 || bound.Confidence != 0.9 || bound.Results < 9 {
				t.Errorf("%s, seed %d: the bound shown is %+v", direction, seed, bound)
			}
		}
	}
}

// A rough surface is never known that well: the study goes on to its last
// trial, and shows how much may be left. Without stop.regret it shows nothing.
func TestAStudyOfARoughSurfaceGoesOn(t *testing.T) {
	rough := surface(func(x, y float64) float64 { return math.Sin(40*x) * math.Cos(37*y) })
	for seed := 1; seed <= 4; seed++ {
		view := run(t, regretStudy(t, "maximize", 0.01, seed), rough, simulator.Options{}).Study
		if view.Progress.Created != 60 {
			t.Errorf("seed %d: ended with %d trials: %s", seed, view.Progress.Created, view.Reason)
		}
		if bound := view.Progress.RegretBound; bound == nil || bound.Value < 0.01 {
			t.Errorf("seed %d: the bound shown is %+v", seed, bound)
		}
	}
	if view := run(t, regretStudy(t, "maximize", 0, 1), rough, simulator.Options{}).Study; view.Progress.RegretBound != nil {
		t.Errorf("without stop.regret the bound shown is %+v", view.Progress.RegretBound)
	}
}
