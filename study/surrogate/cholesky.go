package surrogate

import "math"

// triangle is a lower triangular matrix, row after row without the zeros, so
// that a row can be appended and taken off again.
//
// It is not gonum's because stored decisions are replayed bit for bit: gonum adds
// in another order, and its factor gives no row back.
type triangle struct {
	n       int
	entries []float64
}

func (t *triangle) row(i int) []float64 { return t.entries[i*(i+1)/2 : (i+1)*(i+2)/2] }

// cut keeps the first n rows.
func (t *triangle) cut(n int) { t.n, t.entries = n, t.entries[:n*(n+1)/2] }

// leastPivot keeps a matrix that is singular up to rounding invertible.
const leastPivot = 1e-10

// extend appends a row to the Cholesky factor L of a matrix A, given the new
// row of A up to its diagonal. The row is overwritten.
func (t *triangle) extend(row []float64) {
	n := t.n
	t.solve(row[:n])
	pivot := row[n] - dot(row[:n], row[:n])
	row[n] = math.Sqrt(max(pivot, leastPivot))
	t.entries = append(t.entries, row...)
	t.n++
}

// solve overwrites b with L⁻¹b; b may be shorter than L.
func (t *triangle) solve(b []float64) {
	for i := range b {
		row := t.row(i)
		b[i] = (b[i] - dot(row[:i], b[:i])) / row[i]
	}
}

// solveTransposed overwrites b with L⁻ᵀb.
func (t *triangle) solveTransposed(b []float64) {
	for i := t.n - 1; i >= 0; i-- {
		row := t.row(i)
		b[i] /= row[i]
		for j, l := range row[:i] {
			b[j] -= l * b[i]
		}
	}
}

// inverse returns L⁻¹.
func (t *triangle) inverse() triangle {
	inverse := triangle{n: t.n, entries: make([]float64, len(t.entries))}
	for i := range t.n {
		row, into := t.row(i), inverse.row(i)
		// into = -(row · the inverse so far) / pivot, one row of it at a time.
		for k, l := range row[:i] {
			for j, x := range inverse.row(k) {
				into[j] -= l * x
			}
		}
		for j := range into[:i] {
			into[j] /= row[i]
		}
		into[i] = 1 / row[i]
	}
	return inverse
}

// dot is the scalar product. Its four sums let the processor work on several
// products at a time.
func dot(a, b []float64) float64 {
	var s0, s1, s2, s3 float64
	b = b[:len(a)]
	i := 0
	for ; i+4 <= len(a); i += 4 {
		x, y := a[i:i+4:i+4], b[i:i+4:i+4]
		s0 += x[0] * y[0]
		s1 += x[1] * y[1]
		s2 += x[2] * y[2]
		s3 += x[3] * y[3]
	}
	for ; i < len(a); i++ {
		s0 += a[i] * b[i]
	}
	return (s0 + s1) + (s2 + s3)
}
