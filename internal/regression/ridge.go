package regression

import "math"

// Ridge is linear least squares with a penalty on the weights (Hoerl and Kennard,
// 1970): w minimizes |y - Xw|² + penalty·|w|². The inputs X may serve several
// targets y. In Bayesian terms the penalty is the precision of the weights' normal
// prior, in units of the noise's.
type Ridge struct {
	inputs [][]float64
	Factor *Factor // of XᵀX + penalty·I
}

// NewRidge factors the normal equations of at least one row of at least one input.
func NewRidge(inputs [][]float64, penalty float64) *Ridge {
	width := len(inputs[0])
	normal := Square(width)
	for i := range normal {
		normal[i][i] = penalty
	}
	for _, x := range inputs {
		for i, left := range x {
			if left == 0 {
				continue
			}
			for j, right := range x[:i+1] {
				normal[i][j] += left * right
			}
		}
	}
	return &Ridge{inputs: inputs, Factor: Factorize(normal)}
}

// Weights are those for one target, a value for each row of the inputs.
func (r *Ridge) Weights(targets []float64) []float64 {
	right := make([]float64, len(r.inputs[0]))
	for i, x := range r.inputs {
		for j, value := range x {
			right[j] += value * targets[i]
		}
	}
	return r.Factor.Solve(right)
}

// FitRidge are the weights for one target; nil where there is no row or no input.
func FitRidge(inputs [][]float64, targets []float64, penalty float64) []float64 {
	if len(inputs) == 0 || len(inputs[0]) == 0 {
		return nil
	}
	return NewRidge(inputs, penalty).Weights(targets)
}

// Scale takes columns to mean 0 and standard deviation 1. A column that did not
// change becomes 0.
type Scale struct{ Mean, Deviation []float64 }

// Standardize measures the columns of at least one row.
func Standardize(rows [][]float64) Scale {
	width, n := len(rows[0]), float64(len(rows))
	s := Scale{Mean: make([]float64, width), Deviation: make([]float64, width)}
	for _, row := range rows {
		for j, x := range row {
			s.Mean[j] += x / n
		}
	}
	for _, row := range rows {
		for j, x := range row {
			s.Deviation[j] += (x - s.Mean[j]) * (x - s.Mean[j]) / n
		}
	}
	for j := range s.Deviation {
		s.Deviation[j] = math.Sqrt(s.Deviation[j])
	}
	return s
}

// Apply standardizes one row.
func (s Scale) Apply(row []float64) []float64 {
	out := make([]float64, len(row))
	for j, x := range row {
		if s.Deviation[j] > 1e-12*math.Abs(s.Mean[j]) && s.Deviation[j] > 0 {
			out[j] = (x - s.Mean[j]) / s.Deviation[j]
		}
	}
	return out
}
