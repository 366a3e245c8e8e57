// Package regression solves small dense systems of symmetric positive definite
// matrices: the covariances and precisions of a few hundred samples at most.
//
// It is our own and not a library's for two reasons: every sum has one order on
// every machine, so that what was decided can be decided again, where libraries use
// vector instructions and split products among goroutines; and a matrix that only
// rounding has made indefinite is factored, where libraries refuse it.
package regression

import "math"

// Matrix is dense, by rows. Of one that is symmetric only the lower half is read
// by what factors and solves, and its rows may end at the diagonal.
type Matrix [][]float64

// Square is a matrix of zeros.
func Square(n int) Matrix {
	m, all := make(Matrix, n), make([]float64, n*n)
	for i := range m {
		m[i] = all[i*n : (i+1)*n]
	}
	return m
}

// Dot is the scalar product; b may be longer.
func Dot(a, b []float64) float64 {
	sum := 0.0
	for i, x := range a {
		sum += x * b[i]
	}
	return sum
}

// Times is the product with a vector.
func (m Matrix) Times(v []float64) []float64 {
	out := make([]float64, len(m))
	for i, row := range m {
		out[i] = Dot(row, v)
	}
	return out
}

// Transposed is a square matrix with rows for columns.
func (m Matrix) Transposed() Matrix {
	turned := Square(len(m))
	for i, row := range m {
		for j, x := range row {
			turned[j][i] = x
		}
	}
	return turned
}

// leastPivot is what a pivot is taken for that rounding made smaller.
const leastPivot = 1e-12

// Factor replaces the lower half of a positive definite matrix A by that of the L
// with LLᵀ = A (Cholesky), and returns it; what is above the diagonal stays.
func (m Matrix) Factor() Matrix {
	for i, row := range m {
		for j := range i {
			row[j] = (row[j] - Dot(row[:j], m[j])) / m[j][j]
		}
		row[i] = math.Sqrt(max(row[i]-Dot(row[:i], row), leastPivot))
	}
	return m
}

// Forward replaces v by L⁻¹v, of the factor L, and returns it. A shorter v is
// solved with as many rows.
func (m Matrix) Forward(v []float64) []float64 {
	for i := range v {
		v[i] = (v[i] - Dot(v[:i], m[i])) / m[i][i]
	}
	return v
}

// Backward replaces v by L⁻ᵀv, of the factor L, and returns it.
func (m Matrix) Backward(v []float64) []float64 {
	for i := len(m) - 1; i >= 0; i-- {
		for j := i + 1; j < len(m); j++ {
			v[i] -= m[j][i] * v[j]
		}
		v[i] /= m[i][i]
	}
	return v
}

// HalfLogDeterminant is half of the logarithm of the determinant of the matrix
// that was factored.
func (m Matrix) HalfLogDeterminant() float64 {
	sum := 0.0
	for i, row := range m {
		sum += math.Log(row[i])
	}
	return sum
}
