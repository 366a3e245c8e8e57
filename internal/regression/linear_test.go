package regression_test

import (
	"math"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/regression"
)

// A matrix BBᵀ + I is solved: A times the solution is the right side.
func TestWhatIsSolvedIsASolution(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		n := rapid.IntRange(1, 12).Draw(t, "n")
		entry := rapid.Float64Range(-3, 3)
		b, a := regression.Square(n), regression.Square(n)
		right := make([]float64, n)
		for i := range n {
			right[i] = entry.Draw(t, "right")
			for j := range n {
				b[i][j] = entry.Draw(t, "b")
			}
		}
		turned := b.Transposed()
		factor := make(regression.Matrix, n) // only the lower half
		for i := range n {
			for j := range n {
				a[i][j] = regression.Dot(b[i], b[j])
				if b[i][j] != turned[j][i] {
					t.Fatal("rows did not become columns")
				}
			}
			a[i][i]++
			factor[i] = append([]float64(nil), a[i][:i+1]...)
		}
		factor.Factor()
		solution := factor.Backward(factor.Forward(append([]float64(nil), right...)))
		for i, x := range a.Times(solution) {
			if math.Abs(x-right[i]) > 1e-8 {
				t.Fatalf("%g instead of %g at %d", x, right[i], i)
			}
		}
		// det(A) by det(LLᵀ) from another factorization: elimination.
		if got, want := 2*factor.HalfLogDeterminant(), logDeterminant(a); math.Abs(got-want) > 1e-8*(1+math.Abs(want)) {
			t.Fatalf("logarithm of the determinant %g, not %g", got, want)
		}
	})
}

// logDeterminant eliminates, on a copy.
func logDeterminant(of regression.Matrix) float64 {
	n, sum := len(of), 0.0
	m := regression.Square(n)
	for i := range m {
		copy(m[i], of[i])
	}
	for k := range n {
		sum += math.Log(m[k][k])
		for i := k + 1; i < n; i++ {
			part := m[i][k] / m[k][k]
			for j := k; j < n; j++ {
				m[i][j] -= part * m[k][j]
			}
		}
	}
	return sum
}

func TestASingularMatrixIsFactored(t *testing.T) {
	m := regression.Matrix{{4}, {2, 1}, {0, 0, 1}}
	m.Factor()
	x := m.Backward(m.Forward([]float64{4, 2, 3}))
	for i, want := range []float64{4, 2, 3} {
		if got := regression.Dot([][]float64{{4, 2, 0}, {2, 1, 0}, {0, 0, 1}}[i], x); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g instead of %g: %v", got, want, x)
		}
	}
}
