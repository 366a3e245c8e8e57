package demand_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/workers/demand"
)

func TestCoverageIsTheShareThatWasNotAbove(t *testing.T) {
	minutes := []demand.Minute{
		{Want: demand.Want{Running: 3}, Told: []float64{1, 2, 3}}, {Want: demand.Want{Running: 2}, Told: []float64{1, 2, 3}},
		{Want: demand.Want{Running: 9}}, {Want: demand.Want{Running: 9}, Told: []float64{1}}, // of other quantiles
	}
	held := demand.Judge(minutes, []float64{0.1, 0.5, 0.9})
	if !slices.Equal(held.Covered, []float64{0, 0.5, 1}) || held.Minutes != 2 || held.Trust != demand.Unsure {
		t.Errorf("%+v", held)
	}
	if held := demand.Judge(nil, []float64{0.1, 0.9}); !slices.Equal(held.Covered, []float64{0, 0}) || held.Minutes != 0 || held.Trust != demand.Unsure {
		t.Errorf("of nothing: %+v", held)
	}
}

// told is a day of demand around 50 with a spread of 10, and what a forecast that is
// off by so much, with so many times the spread, told of it.
func told(off, spread float64, quantiles, normal []float64) []demand.Minute {
	random := rand.New(rand.NewPCG(3, 4))
	minutes := make([]demand.Minute, 1440)
	for i := range minutes {
		minutes[i].Running = math.Round(50 + 10*random.NormFloat64())
		for j := range quantiles {
			minutes[i].Told = append(minutes[i].Told, 50+off+10*spread*normal[j])
		}
	}
	return minutes
}

func TestWhetherAForecastCanBeTrusted(t *testing.T) {
	quantiles, normal := []float64{0.1, 0.5, 0.9, 0.99}, []float64{-1.2816, 0, 1.2816, 2.3263}
	for name, c := range map[string]struct {
		off, spread float64
		want        demand.Trust
		verdicts    []demand.Verdict
	}{
		"as it should be":    {0, 1, demand.Good, []demand.Verdict{demand.Holds, demand.Holds, demand.Holds, demand.Holds}},
		"too narrow":         {0, 0.5, demand.Optimistic, []demand.Verdict{demand.TooHigh, demand.Holds, demand.TooLow, demand.TooLow}},
		"too wide":           {0, 2, demand.Cautious, []demand.Verdict{demand.TooLow, demand.Holds, demand.TooHigh, demand.Holds}},
		"too much is told":   {12, 1, demand.Cautious, []demand.Verdict{demand.TooHigh, demand.TooHigh, demand.TooHigh, demand.Holds}},
		"too little is told": {-12, 1, demand.Optimistic, []demand.Verdict{demand.TooLow, demand.TooLow, demand.TooLow, demand.TooLow}},
	} {
		held := demand.Judge(told(c.off, c.spread, quantiles, normal), quantiles)
		if held.Trust != c.want || !slices.Equal(held.Verdicts, c.verdicts) {
			t.Errorf("%s: %+v", name, held)
		}
	}
	low := told(0, 1, quantiles, normal)
	for i := range low {
		low[i].Told[0] = 0
	}
	if held := demand.Judge(low, quantiles); held.Trust != demand.Uneven {
		t.Errorf("only the lowest is off: %+v", held)
	}
}

// A demand that does not change is at every quantile, of which none is wrong.
func TestADemandThatStaysIsForetold(t *testing.T) {
	minutes := make([]demand.Minute, 200)
	for i := range minutes {
		minutes[i].Running, minutes[i].Told = 4, []float64{4, 4, 4.2}
	}
	held := demand.Judge(minutes, []float64{0.1, 0.5, 0.9})
	if held.Trust != demand.Good || held.Covered[0] != 1 {
		t.Errorf("%+v", held)
	}
}
