package regression_test

import (
	"math"
	"slices"
	"testing"

	"gonum.org/v1/gonum/mat"
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
		half := make(regression.Matrix, n) // only the lower half
		for i := range n {
			for j := range n {
				a[i][j] = regression.Dot(b[i], b[j])
			}
			a[i][i]++
			half[i] = append([]float64(nil), a[i][:i+1]...)
		}
		factor := regression.Factorize(half)
		solution := factor.Solve(right)
		for i, x := range a.Times(solution) {
			if math.Abs(x-right[i]) > 1e-8 {
				t.Fatalf("%g instead of %g at %d", x, right[i], i)
			}
		}
		var product mat.Dense
		product.Mul(factor.Lower(), factor.Lower().T())
		for i := range n {
			for j := range n {
				if math.Abs(product.At(i, j)-a[i][j]) > 1e-8 {
					t.Fatalf("LLᵀ has %g instead of %g at %d, %d", product.At(i, j), a[i][j], i, j)
				}
			}
		}
		white := factor.Whiten(append([]float64(nil), right...))
		if got, want := regression.Dot(white, white), regression.Dot(right, solution); math.Abs(got-want) > 1e-8 {
			t.Fatalf("the whitened vector has the squared length %g, not %g", got, want)
		}
		// det(A) by det(LLᵀ) from another factorization: elimination.
		if got, want := factor.LogDeterminant(), logDeterminant(a); math.Abs(got-want) > 1e-8*(1+math.Abs(want)) {
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
	x := regression.Factorize(m).Solve([]float64{4, 2, 3})
	for i, want := range []float64{4, 2, 3} {
		if got := regression.Dot([][]float64{{4, 2, 0}, {2, 1, 0}, {0, 0, 1}}[i], x); math.Abs(got-want) > 1e-3 {
			t.Errorf("%g instead of %g: %v", got, want, x)
		}
	}
}

func TestAMatrixThatIsNotFiniteHasNoSolutionButZero(t *testing.T) {
	for _, bad := range []float64{math.NaN(), math.Inf(1), math.Inf(-1)} {
		for i, x := range regression.Factorize(regression.Matrix{{1}, {bad, 1}}).Solve([]float64{1, 2}) {
			if math.Abs(x) > 1e-100 {
				t.Errorf("with %g, %g at %d", bad, x, i)
			}
		}
	}
}

// The weights are where the slope of the penalized squared error is zero.
func TestARidgeIsAtTheBottomOfItsError(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		rows, width := rapid.IntRange(1, 20).Draw(t, "rows"), rapid.IntRange(1, 6).Draw(t, "width")
		penalty, entry := rapid.Float64Range(0.01, 2).Draw(t, "penalty"), rapid.Float64Range(-3, 3)
		inputs, targets := make([][]float64, rows), make([]float64, rows)
		for i := range inputs {
			targets[i] = entry.Draw(t, "target")
			for range width {
				inputs[i] = append(inputs[i], entry.Draw(t, "input"))
			}
		}
		ridge := regression.NewRidge(inputs, penalty)
		weights := ridge.Weights(targets)
		slope := make([]float64, width)
		for j, w := range weights {
			slope[j] = penalty * w
			for i, x := range inputs {
				slope[j] += x[j] * (regression.Dot(weights, x) - targets[i])
			}
			if math.Abs(slope[j]) > 1e-8 {
				t.Fatalf("the slope by weight %d is %g", j, slope[j])
			}
		}
		// With x once more among the inputs, the prediction at x goes by its leverage
		// h towards the target: (p + h·y)/(1 + h).
		x, y := inputs[0], 2.5
		white := ridge.Factor.Whiten(slices.Clone(x))
		before, h := regression.Dot(weights, x), regression.Dot(white, white)
		after := regression.Dot(regression.FitRidge(append(inputs, x), append(targets, y), penalty), x)
		if want := (before + h*y) / (1 + h); math.Abs(after-want) > 1e-8 {
			t.Fatalf("with one more target the prediction is %g, not %g", after, want)
		}
	})
}
