package estimate

import "math"

// matrix is dense, by rows.
type matrix [][]float64

func square(n int) matrix {
	m, all := make(matrix, n), make([]float64, n*n)
	for i := range m {
		m[i] = all[i*n : (i+1)*n]
	}
	return m
}

// times is the product with a vector.
func (m matrix) times(v []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		out[i] = dot(row, v)
	}
	return out
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// cholesky replaces the lower half of a positive definite matrix by its factor.
// What rounding has made indefinite gets a little added on the diagonal.
func (m matrix) cholesky() {
	for i, row := range m {
		for j := range i {
			row[j] = (row[j] - dot(row[:j], m[j][:j])) / m[j][j]
		}
		row[i] = math.Sqrt(max(row[i]-dot(row[:i], row[:i]), 1e-12))
	}
}

// forward solves with the factor, in place.
func (m matrix) forward(v []float64) []float64 {
	for i, row := range m {
		v[i] = (v[i] - dot(row[:i], v[:i])) / row[i]
	}
	return v
}

// backward solves with the factor's transpose, in place.
func (m matrix) backward(v []float64) []float64 {
	for i := len(m) - 1; i >= 0; i-- {
		for j := i + 1; j < len(m); j++ {
			v[i] -= m[j][i] * v[j]
		}
		v[i] /= m[i][i]
	}
	return v
}

// halfLogDeterminant is of the matrix that was factored.
func (m matrix) halfLogDeterminant() float64 {
	sum := 0.0
	for i, row := range m {
		sum += math.Log(row[i])
	}
	return sum
}
