package forecast

import (
	"slices"
)

// Seasonal is the honest baseline: the demand now, with the change that
// followed at the same time one period ago, and around it the errors that this
// made over the series it learned from. With a period of 0 it is persistence:
// what is now stays.
type Seasonal struct {
	period    int
	quantiles []float64
	errors    [][]float64 // for each minute ahead, at each quantile
}

// NewSeasonal learns the errors from a series. The period is in minutes: 1,440
// for a day.
func NewSeasonal(series []float64, period int, quantiles []float64) (*Seasonal, error) {
	if err := checkSeries(series, period+2*Horizon); err != nil {
		return nil, err
	}
	s := &Seasonal{period: period, quantiles: slices.Clone(quantiles)}
	for ahead := 1; ahead <= Horizon; ahead++ {
		var errors []float64
		for now := max(period, 1); now+ahead < len(series); now++ {
			errors = append(errors, series[now+ahead]-s.point(series[:now+1], ahead))
		}
		slices.Sort(errors)
		row := make([]float64, len(quantiles))
		for i, q := range quantiles {
			row[i] = quantileOf(errors, q)
		}
		s.errors = append(s.errors, row)
	}
	return s, nil
}

// point is the forecast without its errors.
func (s *Seasonal) point(history []float64, ahead int) float64 {
	now := len(history) - 1
	if s.period == 0 || now-s.period < 0 {
		return history[now]
	}
	then := now - s.period
	return history[now] + history[min(then+ahead, now)] - history[then]
}

// Forecast needs a period of history, and one minute.
func (s *Seasonal) Forecast(history []float64) (Forecast, error) {
	history = history[max(0, len(history)-s.period-1):]
	if err := checkSeries(history, s.period+1); err != nil {
		return Forecast{}, err
	}
	f := Forecast{Quantiles: s.quantiles}
	for ahead := 1; ahead <= Horizon; ahead++ {
		point := s.point(history, ahead)
		row := slices.Clone(s.errors[ahead-1])
		for i := range row {
			row[i] += point
		}
		f.Demand = append(f.Demand, row)
	}
	return tidy(f), nil
}

// quantileOf a sorted list, between neighbours in proportion.
func quantileOf(sorted []float64, q float64) float64 {
	place := q * float64(len(sorted)-1)
	at := int(place)
	if at+1 >= len(sorted) {
		return sorted[len(sorted)-1]
	}
	return sorted[at] + (place-float64(at))*(sorted[at+1]-sorted[at])
}
