package main

import (
	"testing"

	"github.com/tandem-tune/tandem/workers/forecast"
)

func TestUnderPredictionIsOfTheMinutesWithSoMuchDemand(t *testing.T) {
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
	if under, minutes := underAt(all, 0.5, 3); under != 0 || minutes != 5 {
		t.Errorf("under %g of %d minutes", under, minutes)
	}
	all[1].Actual[4] = 4.1
	if under, _ := underAt(all, 0.5, 3); under != 0.2 {
		t.Errorf("under %g of the minutes", under)
	}
}
