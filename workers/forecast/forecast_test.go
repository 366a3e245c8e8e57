package forecast_test

import (
	"math"
	"math/rand/v2"
	"slices"
	"sync"
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

// judge forecasts the series and rates that.
func judge(forecaster forecast.Forecaster, series []float64, begin, step int, quantile float64) (forecast.Score, error) {
	all, err := forecast.Collect(forecaster, series, begin, step)
	return forecast.Rate(all, quantile), err
}

func TestNetworksLearnWavesAndTheirNoise(t *testing.T) {
	t.Parallel()
	n, err := forecast.Train(waves(3000, 4, 1), forecast.Settings{Hidden: 8, Samples: 2500, Rate: 0.01, Seed: 5, Quantiles: []float64{0.1, 0.5, 0.9}})
	if err != nil {
		t.Fatal(err)
	}
	test := waves(1200, 4, 2)
	got, err := judge(n, test, 0, 3, 0.5)
	if err != nil {
		t.Fatal(err)
	}
	naive, err := forecast.NewNaive(waves(3000, 4, 1), []float64{0.1, 0.5, 0.9})
	if err != nil {
		t.Fatal(err)
	}
	persistence, err := judge(naive, test, 0, 3, 0.5)
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
}

// train makes a network of a seed, and trained is one of the first.
func train(seed uint64) (*forecast.Network, error) {
	return forecast.Train(waves(400, 4, 1), forecast.Settings{Hidden: 4, Samples: 64, Seed: seed})
}

var trained = sync.OnceValues(func() (*forecast.Network, error) { return train(1) })

func TestTheSameSeedTrainsTheSameNetwork(t *testing.T) {
	said := func(n *forecast.Network, err error) forecast.Forecast {
		t.Helper()
		if err != nil {
			t.Fatal(err)
		}
		f, err := n.Forecast(waves(400, 4, 1))
		if err != nil {
			t.Fatal(err)
		}
		return f
	}
	one, same, other := said(trained()), said(train(1)), said(train(2))
	if !slices.EqualFunc(one.Demand, same.Demand, slices.Equal) {
		t.Error("the same seed gives another network")
	}
	if slices.EqualFunc(one.Demand, other.Demand, slices.Equal) {
		t.Error("another seed gives the same network")
	}
}

func TestQuantilesAreInOrderWhateverTheHistory(t *testing.T) {
	n, err := trained()
	if err != nil {
		t.Fatal(err)
	}
	naive, err := forecast.NewNaive(waves(400, 4, 1), forecast.Quantiles())
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

func TestTheKnobServesWhatIsAskedFor(t *testing.T) {
	series := waves(4000, 6, 3)
	naive, err := forecast.NewNaive(series[:2000], forecast.Quantiles())
	if err != nil {
		t.Fatal(err)
	}
	power := forecast.Power{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1}
	learned, err := forecast.Collect(naive, series[:3000], 2000, forecast.Horizon)
	if err != nil {
		t.Fatal(err)
	}
	played, err := forecast.Collect(naive, series, 3000, forecast.Horizon)
	if err != nil {
		t.Fatal(err)
	}
	k, err := forecast.NewKnob(learned, 200, power)
	if err != nil {
		t.Fatal(err)
	}
	for i, setting := range k.Settings()[1:] {
		if before := k.Settings()[i]; setting.Served < before.Served || setting.Saved > before.Saved {
			t.Errorf("the quantile %g: %+v, the one below: %+v", setting.Quantile, setting.Play, before.Play)
		}
	}
	atOnce, err := forecast.NewKnob(learned, 200, forecast.Power{AwakeWatts: 50, AsleepWatts: 25})
	if err != nil {
		t.Fatal(err)
	}
	foresight, err := atOnce.PlayBy(played, func(one forecast.Judged) int { return min(200, int(math.Ceil(slices.Max(one.Actual)-1e-9))) }, func(_, _ float64) {})
	if err != nil || foresight.Served != 1 || foresight.Met != 1 || foresight.Saved <= 0 {
		t.Errorf("with foresight, and nothing to wait for: %+v, %v", foresight, err)
	}
	for _, performance := range []float64{0.9, 0.97, 0.99} {
		setting, reached, err := k.Set(performance)
		if err != nil || !reached || setting.Served < performance {
			t.Fatalf("asked for %g: %+v, %v, %v", performance, setting, reached, err)
		}
		play, err := k.Play(played, setting.Quantile)
		if err != nil {
			t.Fatal(err)
		}
		if play.Served < performance-0.01 || play.Saved <= 0 || play.Saved >= 0.5 {
			t.Errorf("asked for %g: %+v", performance, play)
		}
		if wanted := k.Awake(played[0].Forecast, setting.Quantile); wanted < 1 || wanted > 200 {
			t.Errorf("%d GPUs should be awake", wanted)
		}
	}
	if setting, reached, err := k.Set(1); err != nil || reached || setting.Quantile != 0.99 {
		t.Errorf("for all of the demand: %+v, %v, %v", setting, reached, err)
	}
	for _, performance := range []float64{0, -1, 1.5, math.NaN()} {
		if _, _, err := k.Set(performance); err == nil {
			t.Errorf("a performance of %g was taken", performance)
		}
	}
}

// TestTheKnobPaysForWakingUp plays a demand by hand: 2 GPUs for 5 minutes, then
// 4 that take two minutes to be there.
func TestTheKnobPaysForWakingUp(t *testing.T) {
	tell := func(demand float64) forecast.Forecast {
		f := forecast.Forecast{Quantiles: []float64{0.5}}
		for range forecast.Horizon {
			f.Demand = append(f.Demand, []float64{demand})
		}
		return f
	}
	all := []forecast.Judged{
		{Forecast: tell(2), Actual: []float64{2, 2, 2, 2, 2}}, {Forecast: tell(4), Actual: []float64{4, 4, 4, 4, 4}},
	}
	k, err := forecast.NewKnob(all, 10, forecast.Power{AwakeWatts: 50, AsleepWatts: 0, DelayMinutes: 2})
	if err != nil {
		t.Fatal(err)
	}
	got := k.Settings()[0].Play
	want := forecast.Play{Served: (10 + 2*2 + 3*4) / 30.0, Met: 8 / 10.0, Saved: 1 - (5*2+5*4)/100.0}
	for name, pair := range map[string][2]float64{"served": {got.Served, want.Served}, "met": {got.Met, want.Met}, "saved": {got.Saved, want.Saved}} {
		if math.Abs(pair[0]-pair[1]) > 1e-12 {
			t.Errorf("%s: %g, want %g", name, pair[0], pair[1])
		}
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
		"no median":         {Quantiles: []float64{0.1, 0.9}},
		"not in order":      {Quantiles: []float64{0.9, 0.5}},
		"a rate below zero": {Rate: -1},
	} {
		if _, err := forecast.Train(good, settings); err == nil {
			t.Errorf("%s: was trained", name)
		}
	}
	naive, err := forecast.NewNaive(good, forecast.Quantiles())
	if err != nil {
		t.Fatal(err)
	}
	all, err := forecast.Collect(naive, good, 0, forecast.Horizon)
	if err != nil {
		t.Fatal(err)
	}
	if _, err := forecast.NewKnob(all, 10, forecast.Power{AwakeWatts: 1, AsleepWatts: 2}); err == nil {
		t.Error("sleep that draws more than being awake was taken")
	}
}
