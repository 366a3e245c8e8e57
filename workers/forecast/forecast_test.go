package forecast_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// waves is demand that goes up and down in an hour and a half, with noise.
func waves(minutes int, noise float64, seed uint64) []float64 {
	random := rand.New(rand.NewPCG(seed, 1))
	series := make([]float64, minutes)
	for i := range series {
		series[i] = max(0, 100+40*math.Sin(2*math.Pi*float64(i)/90)+noise*random.NormFloat64())
	}
	return series
}

func TestNetworksLearnWavesAndTheirNoise(t *testing.T) {
	for _, encoder := range []string{forecast.GRU, forecast.BiLSTM, forecast.Convolutional} {
		t.Run(encoder, func(t *testing.T) {
			t.Parallel()
			n, err := forecast.Train(waves(3000, 4, 1), forecast.Settings{Encoder: encoder, Hidden: 8, Samples: 2500, Rate: 0.01, Seed: 5, Quantiles: []float64{0.1, 0.5, 0.9}})
			if err != nil {
				t.Fatal(err)
			}
			test := waves(1200, 4, 2)
			got, err := forecast.Judge(n, test, 0, 3, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			naive, err := forecast.NewSeasonal(waves(3000, 4, 1), 0, []float64{0.1, 0.5, 0.9})
			if err != nil {
				t.Fatal(err)
			}
			persistence, err := forecast.Judge(naive, test, 0, 3, 0.5)
			if err != nil {
				t.Fatal(err)
			}
			if got.Pinball > 0.8*persistence.Pinball {
				t.Errorf("the loss is %.3f, and of what is now %.3f", got.Pinball, persistence.Pinball)
			}
			for i, q := range []float64{0.1, 0.5, 0.9} {
				if math.Abs(got.Coverage[i]-q) > 0.12 {
					t.Errorf("the quantile %g covers %.2f", q, got.Coverage[i])
				}
			}
		})
	}
}

func TestTheSameSeedTrainsTheSameNetwork(t *testing.T) {
	series := waves(400, 4, 1)
	train := func(seed uint64) forecast.Forecast {
		n, err := forecast.Train(series, forecast.Settings{Hidden: 4, Samples: 64, Seed: seed})
		if err != nil {
			t.Fatal(err)
		}
		f, err := n.Forecast(series)
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one, same, other := train(1), train(1), train(2)
	if !slices.EqualFunc(one.Demand, same.Demand, slices.Equal) {
		t.Error("the same seed gives another network")
	}
	if slices.EqualFunc(one.Demand, other.Demand, slices.Equal) {
		t.Error("another seed gives the same network")
	}
}

func TestQuantilesAreInOrderWhateverTheHistory(t *testing.T) {
	n, err := forecast.Train(waves(400, 4, 1), forecast.Settings{Hidden: 4, Samples: 64})
	if err != nil {
		t.Fatal(err)
	}
	naive, err := forecast.NewSeasonal(waves(400, 4, 1), 90, forecast.Quantiles())
	if err != nil {
		t.Fatal(err)
	}
	rapid.Check(t, func(t *rapid.T) {
		history := rapid.SliceOfN(rapid.Float64Range(0, 1e9), forecast.Lookback, forecast.Lookback+5).Draw(t, "history")
		for _, one := range []forecast.Forecaster{n, naive} {
			f, err := one.Forecast(history)
			if err != nil {
				t.Fatal(err)
			}
			for minute, row := range f.Demand {
				if !slices.IsSorted(row) || row[0] < 0 || math.IsNaN(row[len(row)-1]) || math.IsInf(row[len(row)-1], 0) {
					t.Fatalf("minute %d: %v", minute, row)
				}
				if at := f.At(minute, 0.905); at < f.At(minute, 0.9) || at > f.At(minute, 0.91) {
					t.Fatalf("between the quantiles: %g", at)
				}
				if f.At(minute, 0.001) != row[0] || f.At(minute, 0.9999) != row[len(row)-1] {
					t.Fatal("beyond the quantiles it is not the last one's")
				}
			}
		}
	})
}

func TestSeasonalFollowsTheDayBefore(t *testing.T) {
	series := waves(900, 0, 1) // without noise its period says all
	s, err := forecast.NewSeasonal(series[:600], 90, []float64{0.5})
	if err != nil {
		t.Fatal(err)
	}
	f, err := s.Forecast(series[:700])
	if err != nil {
		t.Fatal(err)
	}
	for minute, row := range f.Demand {
		if math.Abs(row[0]-series[700+minute]) > 1e-6 {
			t.Errorf("minute %d: %g, want %g", minute, row[0], series[700+minute])
		}
	}
}

func TestTheKnobServesWhatIsAskedFor(t *testing.T) {
	series := waves(4000, 6, 3)
	naive, err := forecast.NewSeasonal(series[:2000], 90, forecast.Quantiles())
	if err != nil {
		t.Fatal(err)
	}
	power := forecast.Power{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1}
	before := forecast.Play{}
	for _, performance := range []float64{0.9, 0.97, 0.99} {
		k, err := forecast.NewKnob(naive, series[2000:3000], 200, power, performance)
		if err != nil {
			t.Fatal(err)
		}
		play, err := k.Play(series[3000:], k.Quantile(), 0)
		if err != nil {
			t.Fatal(err)
		}
		if play.Served < performance-0.01 || play.Saved <= 0 || play.Saved >= 0.5 {
			t.Errorf("asked for %g: %+v", performance, play)
		}
		if play.Served < before.Served || before.Saved != 0 && play.Saved > before.Saved {
			t.Errorf("more performance (%g) serves %+v, less served %+v", performance, play, before)
		}
		before = play
		wanted, change, err := k.Awake(series, 150)
		if err != nil || change != wanted-150 || wanted < 1 || wanted > 200 {
			t.Errorf("%d, %d: %v", wanted, change, err)
		}
	}
	all, err := forecast.NewKnob(naive, series[2000:3000], 200, power, 1)
	if err != nil {
		t.Fatal(err)
	}
	if all.Quantile() != 0.99 {
		t.Errorf("for all of the demand it takes the quantile %g", all.Quantile())
	}
}

func TestWhatIsNoDemandIsRefused(t *testing.T) {
	good := waves(400, 1, 1)
	bad := slices.Clone(good)
	bad[390] = math.NaN()
	negative := slices.Clone(good)
	negative[390] = -1
	for name, series := range map[string][]float64{"short": good[:100], "NaN": bad, "negative": negative} {
		if _, err := forecast.Train(series, forecast.Settings{Samples: 32}); err == nil {
			t.Errorf("%s: was learned from", name)
		}
	}
	for name, settings := range map[string]forecast.Settings{
		"an encoder that there is not": {Encoder: "transformer"},
		"no median":                    {Quantiles: []float64{0.1, 0.9}},
		"not in order":                 {Quantiles: []float64{0.9, 0.5}},
		"a rate below zero":            {Rate: -1},
	} {
		if _, err := forecast.Train(good, settings); err == nil {
			t.Errorf("%s: was trained", name)
		}
	}
	naive, err := forecast.NewSeasonal(good, 0, forecast.Quantiles())
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forecast.NewKnob(naive, good, 10, forecast.Power{AwakeWatts: 1, AsleepWatts: 2}, 0.9); err == nil {
		t.Error("sleep that draws more than being awake was taken")
	}
}
