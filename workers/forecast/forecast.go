// Package forecast answers: how many GPUs will be needed in the next minutes,
// how sure is that, and how many should therefore be awake?
//
// It is CUFF (Mammen, Bashir, Kolluri, Lee and Shenoy, e-Energy 2023): from the
// demand of the last two hours a network predicts that of the next minutes, all
// minutes at once and with quantiles that are trained jointly ([Network],
// section 3.2); a knob turns quantiles into a number of GPUs ([Knob], section
// 3.3). That what is now stays is there to compare with ([Naive]), and a fixed [Margin].
// Its one invariant: the quantiles of a forecast are in order, and
// none is below zero. It does no I/O and knows no clock; what is random follows
// from a seed.
package forecast

import (
	"fmt"
	"math"
	"slices"
)

const (
	// Lookback and Horizon are the paper's: two hours in, five minutes out, in
	// minutes.
	Lookback = 120
	Horizon  = 5
)

// Quantiles are those of section 4.1: 0.1 to 0.9 in steps of 0.1, from there to
// 0.99 in steps of 0.01.
func Quantiles() []float64 {
	var list []float64
	for i := 1; i < 9; i++ {
		list = append(list, float64(i)/10)
	}
	for i := 90; i <= 99; i++ {
		list = append(list, float64(i)/100)
	}
	return list
}

// Forecast is what the demand will be, in GPUs.
type Forecast struct {
	// Quantiles are ascending; Demand has a row for each minute ahead, with the
	// demand at each of them.
	Quantiles []float64
	Demand    [][]float64
}

// At is the demand at any quantile, interpolated between those there are; at the
// ends it is the last one's.
func (f Forecast) At(minute int, quantile float64) float64 {
	row := f.Demand[minute]
	at, found := slices.BinarySearch(f.Quantiles, quantile)
	switch {
	case found:
		return row[at]
	case at == 0:
		return row[0]
	case at == len(row):
		return row[len(row)-1]
	}
	low, high := f.Quantiles[at-1], f.Quantiles[at]
	return row[at-1] + (row[at]-row[at-1])*(quantile-low)/(high-low)
}

// Forecaster predicts from the demand of the last minutes, the newest last. The
// error says what the history lacks.
type Forecaster interface {
	Forecast(history []float64) (Forecast, error)
}

// Pinball is the quantile loss, equation 2.
func Pinball(quantile, actual, predicted float64) float64 {
	return max(quantile*(actual-predicted), (1-quantile)*(predicted-actual))
}

// checkSeries refuses what is no demand.
func checkSeries(series []float64, least int) error {
	if len(series) < least {
		return fmt.Errorf("%d minutes of demand: %d are needed", len(series), least)
	}
	for i, x := range series {
		if math.IsNaN(x) || math.IsInf(x, 0) || x < 0 {
			return fmt.Errorf("the demand at minute %d is %g: it must be a number of GPUs", i, x)
		}
	}
	return nil
}

// tidy makes quantiles what they must be: in order, and not below zero.
func tidy(f Forecast) Forecast {
	for _, row := range f.Demand {
		for i := range row {
			row[i] = max(row[i], 0)
			if i > 0 {
				row[i] = max(row[i], row[i-1])
			}
		}
	}
	return f
}
