package forecast_test

import (
	"errors"
	"math"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// daily is demand with a peak each day at the same hour, and noise.
func daily(days int, noise float64) []float64 {
	random := rand.New(rand.NewPCG(4, 2))
	series := make([]float64, days*forecast.Day)
	for i := range series {
		series[i] = max(0, 20+10*math.Sin(2*math.Pi*float64(i)/forecast.Day)+noise*random.NormFloat64())
	}
	return series
}

func TestTheBestWayToForecastIsTaken(t *testing.T) {
	settings := forecast.Settings{Hidden: 4, Samples: 320, Seed: 1}
	for _, c := range []struct {
		name    string
		series  []float64
		tried   int // of three
		judged  int
		methods []string
	}{
		{"an hour", waves(60, 1, 1), 1, 0, []string{forecast.Persistence}},
		{"five hours", waves(300, 1, 1), 1, 60, []string{forecast.Persistence}},
		{"three days of noise", daily(3, 2), 3, 3 * forecast.Day / 5, []string{forecast.Persistence, forecast.GRU}},
		{"twelve days", daily(12, 0), 3, 12 * forecast.Day / 5, []string{forecast.Persistence, forecast.GRU}},
	} {
		t.Run(c.name, func(t *testing.T) {
			t.Parallel()
			l, err := forecast.Learn(c.series, &settings)
			if err != nil {
				t.Fatal(err)
			}
			tried, best := 0, math.Inf(1)
			for _, one := range l.Tried {
				if one.Reason == "" {
					tried++
					best = min(best, one.Pinball)
				} else if !strings.Contains(one.Reason, "needs") {
					t.Errorf("%s: %s", one.Method, one.Reason)
				}
			}
			if tried != c.tried || len(l.Tried) != 3 || l.JudgedOn != c.judged || l.LearnedFrom+l.JudgedOn != len(c.series) {
				t.Errorf("%+v, learned from %d, judged on %d", l.Tried, l.LearnedFrom, l.JudgedOn)
			}
			at := func(is func(forecast.Tried) bool) int { return slices.IndexFunc(l.Tried, is) }
			taken, least := at(func(one forecast.Tried) bool { return one.Method == l.Method }), at(func(one forecast.Tried) bool { return one.Reason == "" && one.Pinball == best })
			if taken > least { // a simpler one may stand, by chance
				t.Errorf("%s was taken: %+v", l.Method, l.Tried)
			}
			if len(c.methods) == 1 && c.methods[0] != l.Method {
				t.Errorf("%s was taken: %+v", l.Method, l.Tried)
			}
			if (l.JudgedOn > 0) != (len(l.Judged) > 0) {
				t.Errorf("%d minutes judged, %d forecasts", l.JudgedOn, len(l.Judged))
			}
			if _, err := l.Forecaster.Forecast(c.series); err != nil {
				t.Error(err)
			}
		})
	}
}

// TestTheSimplestWayStandsWithinChance, and goes where another is better than that: what
// is learned of errors is worth something only where they are not what the margin takes.
func TestTheSimplestWayStandsWithinChance(t *testing.T) {
	for _, c := range []struct {
		noise float64
		want  string
	}{{2.76, forecast.FixedMargin}, {0.1, forecast.Persistence}} {
		random := rand.New(rand.NewPCG(6, 2))
		series := make([]float64, forecast.LeastForMargin)
		for i := range series {
			noise := c.noise
			if i < len(series)*4/5 {
				noise *= 0.8 // the end is not as what was learned from
			}
			series[i] = 100 + noise*random.NormFloat64()
		}
		if l, err := forecast.Learn(series, nil); err != nil || l.Method != c.want {
			t.Errorf("noise of %g: %s was taken (%v): %+v", c.noise, l.Method, err, l.Tried)
		}
	}
}

func TestTooLittleIsNotLearnedFrom(t *testing.T) {
	_, err := forecast.Learn(make([]float64, 29), nil)
	if err == nil || !strings.Contains(err.Error(), "30") {
		t.Errorf("half an hour less a minute: %v", err)
	}
	asked := 0
	_, err = forecast.Learn(daily(3, 1), &forecast.Settings{Hidden: 4, Stop: func() bool { asked++; return asked > 3 }})
	if !errors.Is(err, forecast.ErrStopped) || asked != 4 {
		t.Errorf("a training that is stopped: %v, asked %d times", err, asked)
	}
}
