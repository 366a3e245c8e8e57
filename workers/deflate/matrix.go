package deflate

import "math"

// matrix is a small square matrix, row by row.
type matrix struct {
	size int
	at   []complex128
}

func newMatrix(size int) matrix { return matrix{size, make([]complex128, size*size)} }

// diagonal has the value on its diagonal.
func diagonal(size int, value complex128) matrix {
	m := newMatrix(size)
	for i := range size {
		m.at[i*size+i] = value
	}
	return m
}

// realMatrix is a matrix of these rows.
func realMatrix(rows [][]float64) matrix {
	m := newMatrix(len(rows))
	for i, row := range rows {
		for j, value := range row {
			m.at[i*m.size+j] = complex(value, 0)
		}
	}
	return m
}

// add adds so many times the other one, in place.
func (m matrix) add(other matrix, times complex128) {
	for i, value := range other.at {
		m.at[i] += times * value
	}
}

func (m matrix) clone() matrix {
	c := newMatrix(m.size)
	copy(c.at, m.at)
	return c
}

// times is the product.
func (m matrix) times(other matrix) matrix {
	n, product := m.size, newMatrix(m.size)
	for i := range n {
		for j := range n {
			value := m.at[i*n+j]
			if value == 0 {
				continue
			}
			for k := range n {
				product.at[i*n+k] += value * other.at[j*n+k]
			}
		}
	}
	return product
}

// column is the product with a column.
func (m matrix) column(v []complex128) []complex128 {
	product := make([]complex128, m.size)
	for i := range m.size {
		for j, value := range v {
			product[i] += m.at[i*m.size+j] * value
		}
	}
	return product
}

// row is the product of a row with the matrix.
func (m matrix) row(v []complex128) []complex128 {
	product := make([]complex128, m.size)
	for i, value := range v {
		for j := range m.size {
			product[j] += value * m.at[i*m.size+j]
		}
	}
	return product
}

// outer adds the product of a column and a row, in place.
func (m matrix) outer(column, row []complex128) {
	for i, left := range column {
		for j, right := range row {
			m.at[i*m.size+j] += left * right
		}
	}
}

// transposed swaps rows and columns.
func (m matrix) transposed() matrix {
	t := newMatrix(m.size)
	for i := range m.size {
		for j := range m.size {
			t.at[j*m.size+i] = m.at[i*m.size+j]
		}
	}
	return t
}

// inverse is the matrix's; not finite where there is none.
func (m matrix) inverse() matrix {
	switch m.size {
	case 1:
		return matrix{1, []complex128{1 / m.at[0]}}
	case 2:
		a, b, c, d := m.at[0], m.at[1], m.at[2], m.at[3]
		det := a*d - b*c
		return matrix{2, []complex128{d / det, -b / det, -c / det, a / det}}
	}
	result := newMatrix(m.size)
	for j := range m.size {
		unit := make([]complex128, m.size)
		unit[j] = 1
		for i, value := range m.solve(unit) {
			result.at[i*m.size+j] = value
		}
	}
	return result
}

// solve is the column x with m x = v: elimination with the largest pivot of each
// column.
func (m matrix) solve(v []complex128) []complex128 {
	n, a, x := m.size, m.clone().at, append([]complex128(nil), v...)
	for c := range n {
		pivot := c
		for r := c + 1; r < n; r++ {
			if size(a[r*n+c]) > size(a[pivot*n+c]) {
				pivot = r
			}
		}
		if pivot != c {
			for k := range n {
				a[c*n+k], a[pivot*n+k] = a[pivot*n+k], a[c*n+k]
			}
			x[c], x[pivot] = x[pivot], x[c]
		}
		for r := c + 1; r < n; r++ {
			factor := a[r*n+c] / a[c*n+c]
			if factor == 0 {
				continue
			}
			for k := c; k < n; k++ {
				a[r*n+k] -= factor * a[c*n+k]
			}
			x[r] -= factor * x[c]
		}
	}
	for r := n - 1; r >= 0; r-- {
		for k := r + 1; k < n; k++ {
			x[r] -= a[r*n+k] * x[k]
		}
		x[r] /= a[r*n+r]
	}
	return x
}

// size is that of a number, as good as its absolute value for a comparison.
func size(z complex128) float64 { return math.Abs(real(z)) + math.Abs(imag(z)) }

// distance is the largest difference between two entries.
func (m matrix) distance(other matrix) float64 {
	most := 0.0
	for i, value := range m.at {
		most = max(most, size(value-other.at[i]))
	}
	return most
}

// ones is a column of ones.
func ones(size int) []complex128 {
	column := make([]complex128, size)
	for i := range column {
		column[i] = 1
	}
	return column
}

// inner is the product of a row and a column.
func inner(row, column []complex128) complex128 {
	sum := complex(0, 0)
	for i, value := range row {
		sum += value * column[i]
	}
	return sum
}

// stationary is the stationary row of a generator: of rates whose rows add up to 0.
func (m matrix) stationary() []complex128 {
	// x m = 0 and x 1 = 1 together: x (m + 1 1ᵀ) = 1ᵀ.
	full := m.clone()
	full.outer(ones(m.size), ones(m.size))
	return full.transposed().solve(ones(m.size))
}
