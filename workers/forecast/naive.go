package forecast

import (
	"slices"
)

// Margin is the simplest way, which learns nothing: what is now stays, and its quantile
// 0.9 is [marginPart] above it, others in proportion.
type Margin struct{}

const marginPart = 0.05

// Forecast needs one minute of history.
func (Margin) Forecast(history []float64) (Forecast, error) {
	history = history[max(0, len(history)-1):]
	if err := checkSeries(history, 1); err != nil {
		return Forecast{}, err
	}
	f := Forecast{Quantiles: Quantiles()}
	for range Horizon {
		row := make([]float64, len(f.Quantiles))
		for i, q := range f.Quantiles {
			row[i] = history[0] * (1 + marginPart*(q-0.5)/0.4)
		}
		f.Demand = append(f.Demand, row)
	}
	return f, nil
}

// Naive is the honest baseline, persistence: what is now stays, and around it are the
// errors that this made over the series it learned from.
type Naive struct {
	quantiles []float64
	errors    [][]float64 // for each minute ahead, at each quantile
}

// NewNaive learns the errors from a series.
func NewNaive(series, quantiles []float64) (*Naive, error) {
	if err := checkSeries(series, 2*Horizon); err != nil {
		return nil, err
	}
	n := &Naive{quantiles: slices.Clone(quantiles)}
	for ahead := 1; ahead <= Horizon; ahead++ {
		var errors []float64
		for now := 1; now+ahead < len(series); now++ {
			errors = append(errors, series[now+ahead]-series[now])
		}
		slices.Sort(errors)
		row := make([]float64, len(quantiles))
		for i, q := range quantiles {
			row[i] = quantileOf(errors, q)
		}
		n.errors = append(n.errors, row)
	}
	return n, nil
}

// Forecast needs one minute of history.
func (n *Naive) Forecast(history []float64) (Forecast, error) {
	history = history[max(0, len(history)-1):]
	if err := checkSeries(history, 1); err != nil {
		return Forecast{}, err
	}
	f := Forecast{Quantiles: n.quantiles}
	for _, errors := range n.errors {
		row := slices.Clone(errors)
		for i := range row {
			row[i] += history[0]
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
