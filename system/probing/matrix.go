package probing

import "math"

// matrix is a square matrix in rows.
type matrix [][]float64

func square(n int) matrix {
	m := make(matrix, n)
	for i := range m {
		m[i] = make([]float64, n)
	}
	return m
}

// cholesky returns the lower triangle L with LLᵀ = a, for a positive definite a.
// A pivot that rounding made smaller than the least is taken for it.
func cholesky(a matrix) matrix {
	const least = 1e-12
	lower := square(len(a))
	for i := range a {
		for j := 0; j <= i; j++ {
			sum := a[i][j] - dot(lower[i][:j], lower[j][:j])
			if i == j {
				lower[i][i] = math.Sqrt(max(sum, least))
			} else {
				lower[i][j] = sum / lower[j][j]
			}
		}
	}
	return lower
}

// forward solves Lx = b.
func forward(lower matrix, b []float64) []float64 {
	x := make([]float64, len(b))
	for i := range b {
		x[i] = (b[i] - dot(lower[i][:i], x[:i])) / lower[i][i]
	}
	return x
}

// backward solves Lᵀx = b.
func backward(lower matrix, b []float64) []float64 {
	x := make([]float64, len(b))
	for i := len(b) - 1; i >= 0; i-- {
		sum := b[i]
		for j := i + 1; j < len(b); j++ {
			sum -= lower[j][i] * x[j]
		}
		x[i] = sum / lower[i][i]
	}
	return x
}

func dot(a, b []float64) float64 {
	sum := 0.0
	for i, v := range a {
		sum += v * b[i]
	}
	return sum
}

// times returns the matrix times the vector.
func (m matrix) times(v []float64) []float64 {
	product := make([]float64, len(m))
	for i, row := range m {
		product[i] = dot(row, v)
	}
	return product
}

// transposed returns the matrix with rows for columns.
func (m matrix) transposed() matrix {
	turned := square(len(m))
	for i, row := range m {
		for j, v := range row {
			turned[j][i] = v
		}
	}
	return turned
}
