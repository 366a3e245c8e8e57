package dopeml

import "math"

// scale brings columns and targets to mean 0 and deviation 1. Columns that do
// not vary are left out.
type scale struct {
	columns              []int
	condition            int // how many of the columns left describe the backend
	columnMean, columnSD []float64
	targetMean, targetSD []float64 // NaN for targets without values
}

func newScale(rows []Row, shape Shape) scale {
	var s scale
	if len(rows) == 0 {
		return s
	}
	for column := range rows[0].Features {
		mean, deviation := moments(rows, func(row Row) float64 { return row.Features[column] })
		if deviation < 1e-9 {
			continue
		}
		if column < shape.Condition {
			s.condition++
		}
		s.columns = append(s.columns, column)
		s.columnMean, s.columnSD = append(s.columnMean, mean), append(s.columnSD, deviation)
	}
	for target := range shape.Logarithmic {
		mean, deviation := moments(rows, func(row Row) float64 { return row.Targets[target] })
		if deviation < 1e-9 { // one value, or the same each time: it says nothing of the spread
			deviation = 0.1
			if shape.Logarithmic[target] {
				deviation = 0.5
			}
		}
		s.targetMean, s.targetSD = append(s.targetMean, mean), append(s.targetSD, deviation)
	}
	return s
}

// moments are the mean and the standard deviation of the values that are not
// NaN; the mean is NaN when there are none.
func moments(rows []Row, value func(Row) float64) (mean, deviation float64) {
	count := 0.0
	for _, row := range rows {
		if v := value(row); !math.IsNaN(v) {
			count++
			mean += v
		}
	}
	mean /= count
	for _, row := range rows {
		if v := value(row); !math.IsNaN(v) {
			deviation += (v - mean) * (v - mean) / count
		}
	}
	return mean, math.Sqrt(deviation)
}

// input is a row's columns; what is far from everything seen is pulled in, so
// that no model is asked where it can only guess wildly.
func (s scale) input(features []float64) []float64 {
	x := make([]float64, len(s.columns))
	for i, column := range s.columns {
		x[i] = min(max((features[column]-s.columnMean[i])/s.columnSD[i], -5), 5)
	}
	return x
}

func (s scale) target(targets []float64) []float64 {
	y := make([]float64, len(targets))
	for o := range y {
		y[o] = (targets[o] - s.targetMean[o]) / s.targetSD[o]
	}
	return y
}

// output takes a prediction back; it changes its arguments.
func (s scale) output(mean, deviation []float64) ([]float64, []float64) {
	for o := range mean {
		mean[o] = s.targetMean[o] + s.targetSD[o]*mean[o]
		deviation[o] *= s.targetSD[o]
		if math.IsNaN(s.targetMean[o]) {
			mean[o], deviation[o] = math.NaN(), math.NaN()
		}
	}
	return mean, deviation
}
