package forecast

import "math"

// Score is how good forecasts were over a series, over all minutes ahead.
type Score struct {
	// Under is the share of minutes whose demand was above the forecast at the
	// quantile, MAE the mean absolute error there, in GPUs (section 4.1).
	Under, MAE float64
	// Pinball is the mean loss over all quantiles; Coverage for each of them the
	// share of minutes whose demand was not above it, which should be the
	// quantile itself.
	Pinball  float64
	Coverage []float64
	Minutes  int
}

// Judge forecasts the series from each of its minutes that has two hours before
// it (or period and one, where that is longer), a step of so many minutes apart.
func Judge(forecaster Forecaster, series []float64, begin, step int, quantile float64) (Score, error) {
	var s Score
	for now := max(begin, Lookback) - 1; now+Horizon < len(series); now += step {
		f, err := forecaster.Forecast(series[:now+1])
		if err != nil {
			return Score{}, err
		}
		if s.Coverage == nil {
			s.Coverage = make([]float64, len(f.Quantiles))
		}
		for minute := range Horizon {
			actual, at := series[now+1+minute], f.At(minute, quantile)
			if actual > at {
				s.Under++
			}
			s.MAE += math.Abs(actual - at)
			for i, q := range f.Quantiles {
				s.Pinball += Pinball(q, actual, f.Demand[minute][i]) / float64(len(f.Quantiles))
				if actual <= f.Demand[minute][i] {
					s.Coverage[i]++
				}
			}
			s.Minutes++
		}
	}
	for _, sum := range []*float64{&s.Under, &s.MAE, &s.Pinball} {
		*sum /= float64(max(1, s.Minutes))
	}
	for i := range s.Coverage {
		s.Coverage[i] /= float64(max(1, s.Minutes))
	}
	return s, nil
}
