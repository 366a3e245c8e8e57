package forecast_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/workers/forecast"
)

// TestWhatGoesUnservedIsBounded: whatever comes, what went unserved beyond what may
// is not more than the debt that is left says, unless that reached its most.
func TestWhatGoesUnservedIsBounded(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		performance := rapid.Float64Range(0.5, 0.999).Draw(t, "performance")
		var c forecast.Correction
		const mean = 10.0
		beyond, aim := 0.0, performance
		for i := range rapid.IntRange(1, 300).Draw(t, "minutes") {
			demand := rapid.Float64Range(0, 40).Draw(t, "demand")
			served := demand * rapid.Float64Range(0, 1).Draw(t, "share")
			before := c
			c = c.Seen(performance, demand, served, mean)
			beyond += demand - served - (1-performance)*demand
			aim = c.Aim(performance)
			if aim < performance || aim >= 1 || c.Debt < 0 || c.Debt > forecast.MostDebt() {
				t.Fatalf("minute %d: it aims at %g for %g, with a debt of %g", i, aim, performance, c.Debt)
			}
			if missed := demand-served > (1-performance)*demand; missed && c.Debt < before.Debt || !missed && c.Debt > before.Debt {
				t.Fatalf("minute %d: of %g GPUs %g were served, and the debt went from %g to %g", i, demand, served, before.Debt, c.Debt)
			}
			if c.Debt == forecast.MostDebt() {
				return
			}
		}
		if owed := c.Debt * (1 - performance) * mean; beyond > owed+1e-6 {
			t.Fatalf("%g GPU-minutes went unserved beyond what may, and the debt says %g", beyond, owed)
		}
	})
}

func TestACorrectionByHand(t *testing.T) {
	var c forecast.Correction
	if c.Aim(0.98) != 0.98 || c.Aim(1) != 1 {
		t.Errorf("without a debt it aims at %g and %g", c.Aim(0.98), c.Aim(1))
	}
	c = c.Seen(0.98, 10, 10, 10) // all was served: that is not saved up
	if c.Debt != 0 {
		t.Errorf("a debt of %g", c.Debt)
	}
	c = c.Seen(0.98, 10, 7.8, 10) // 2.2 instead of 0.2 were not: ten minutes' worth more
	if math.Abs(c.Debt-10) > 1e-9 {
		t.Errorf("a debt of %g minutes, want 10", c.Debt)
	}
	c = c.Seen(0.98, 20, 20, 10) // twice the demand: two minutes are paid back
	if math.Abs(c.Debt-8) > 1e-9 {
		t.Errorf("a debt of %g minutes, want 8", c.Debt)
	}
	if c.Seen(1, 10, 0, 10) != c || c.Seen(0.98, 10, 0, 0) != c || c.Seen(0.98, 10, 0, math.NaN()) != c {
		t.Error("where nothing may go unserved, or no demand is known, it was corrected")
	}
	worst := c
	for range 1000 {
		worst = worst.Seen(0.98, 10, 0, 10)
	}
	if aim := worst.Aim(0.98); worst.Debt != forecast.MostDebt() || math.Abs(aim-0.998) > 1e-9 {
		t.Errorf("when nothing is served it aims at %g, want 0.998", aim)
	}
}

// TestAShiftIsCorrected sets a knob on demand that hardly changes and plays it on
// demand that does: as it was set it misses what is asked for, corrected it does not.
func TestAShiftIsCorrected(t *testing.T) {
	calm, wild := waves(4000, 2, 3), waves(12_000, 8, 4)
	naive, err := forecast.NewNaive(calm[:2000], forecast.Quantiles())
	if err != nil {
		t.Fatal(err)
	}
	collect := func(series []float64, begin int) []forecast.Judged {
		all, err := forecast.Collect(naive, series, begin, forecast.Horizon)
		if err != nil {
			t.Fatal(err)
		}
		return all
	}
	same, harder := collect(calm, 3000), collect(wild, 200)
	k, err := forecast.NewKnob(collect(calm[:3000], 2000), 200, forecast.Power{AwakeWatts: 50, AsleepWatts: 0, DelayMinutes: 1})
	if err != nil {
		t.Fatal(err)
	}
	const asked = 0.98
	setting, reached, err := k.Set(asked)
	if err != nil || !reached {
		t.Fatalf("%+v, %v, %v", setting, reached, err)
	}
	fixed, err := k.Play(harder, setting.Quantile)
	if err != nil {
		t.Fatal(err)
	}
	corrected, after, err := playCorrected(k, harder, asked, forecast.Correction{})
	if err != nil {
		t.Fatal(err)
	}
	if fixed.Served >= asked-0.002 {
		t.Fatalf("as it was set it serves %g: nothing to correct", fixed.Served)
	}
	if corrected.Served < asked-0.0005 || corrected.Saved <= 0 || after.Debt <= 0 {
		t.Errorf("asked for %g: corrected %+v with a debt of %g, as it was set %+v", asked, corrected, after.Debt, fixed)
	}
	// It goes on where it was: what it begins with counts from the first decision on.
	again, _, err := playCorrected(k, harder[:50], asked, after)
	if err != nil {
		t.Fatal(err)
	}
	if first, _, err := playCorrected(k, harder[:50], asked, forecast.Correction{}); err != nil || again.Served <= first.Served {
		t.Errorf("with what was seen before it serves %g, without %g: %v", again.Served, first.Served, err)
	}
	// Where the knob was set on the same, it costs little.
	plain, err := k.Play(same, setting.Quantile)
	if err != nil {
		t.Fatal(err)
	}
	kept, _, err := playCorrected(k, same, asked, forecast.Correction{})
	if err != nil || kept.Served < plain.Served || kept.Saved < plain.Saved-0.02 {
		t.Errorf("on the same demand: %+v, without correction %+v: %v", kept, plain, err)
	}
	if _, _, err := playCorrected(k, same, 1.5, forecast.Correction{}); err == nil {
		t.Error("a performance of 1.5 was taken")
	}
}

// playCorrected plays a knob that is set anew at each of the forecasts for a performance
// as it is corrected by what the ones before it served. It returns the last correction.
func playCorrected(k *forecast.Knob, all []forecast.Judged, performance float64, c forecast.Correction) (forecast.Play, forecast.Correction, error) {
	if _, _, err := k.Set(performance); err != nil {
		return forecast.Play{}, c, err
	}
	play, err := k.PlayBy(all, func(one forecast.Judged) int {
		setting, _, _ := k.Set(c.Aim(performance)) // an aim is a performance
		return k.Awake(one.Forecast, setting.Quantile)
	}, func(demand, served float64) { c = c.Seen(performance, demand, served, k.MeanDemand()) })
	return play, c, err
}
