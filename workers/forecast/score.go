package forecast

import "math"

// Judged is a forecast beside what came.
type Judged struct {
	Forecast Forecast
	// Actual is the demand of the Horizon minutes behind it, in GPUs.
	Actual []float64
}

// Collect forecasts the series from each of its minutes that has begin minutes
// (and two hours) before it, a step of so many minutes apart. The error is the
// forecaster's.
func Collect(forecaster Forecaster, series []float64, begin, step int) ([]Judged, error) {
	var all []Judged
	for now := max(begin, Lookback) - 1; now+Horizon < len(series); now += max(1, step) {
		f, err := forecaster.Forecast(series[:now+1])
		if err != nil {
			return nil, err
		}
		all = append(all, Judged{Forecast: f, Actual: series[now+1 : now+1+Horizon]})
	}
	return all, nil
}

// Score is how good forecasts were over a series, over all minutes ahead.
type Score struct {
	// Under is the share of minutes whose demand was above the forecast at the
	// quantile, MAE the mean absolute error there, in GPUs (section 4.1).
	Under, MAE float64
	// Pinball is the mean loss over all quantiles, and Losses that of each;
	// Coverage is for each of them the share of minutes whose demand was not above
	// it, which should be the quantile itself.
	Pinball  float64
	Losses   []float64
	Coverage []float64
	Minutes  int
}

// Rate sums up how good the forecasts were, at one quantile and at all.
func Rate(all []Judged, quantile float64) Score {
	var s Score
	for _, one := range all {
		if s.Coverage == nil {
			s.Coverage, s.Losses = make([]float64, len(one.Forecast.Quantiles)), make([]float64, len(one.Forecast.Quantiles))
		}
		for minute, actual := range one.Actual {
			at := one.Forecast.At(minute, quantile)
			if actual > at {
				s.Under++
			}
			s.MAE += math.Abs(actual - at)
			for i, q := range one.Forecast.Quantiles {
				s.Losses[i] += Pinball(q, actual, one.Forecast.Demand[minute][i])
				if actual <= one.Forecast.Demand[minute][i] {
					s.Coverage[i]++
				}
			}
			s.Minutes++
		}
	}
	minutes := float64(max(1, s.Minutes))
	s.Under, s.MAE = s.Under/minutes, s.MAE/minutes
	for i := range s.Coverage {
		s.Coverage[i] /= minutes
		s.Losses[i] /= minutes
		s.Pinball += s.Losses[i] / float64(len(s.Losses))
	}
	return s
}
