// Package regression solves dense systems of symmetric positive definite matrices
// on gonum, and fits ridge regressions with them: the covariances and normal
// equations of a few hundred samples at most.
package regression

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/blas"
	"gonum.org/v1/gonum/blas/blas64"
	"gonum.org/v1/gonum/lapack/lapack64"
	"gonum.org/v1/gonum/mat"
)

// Matrix is dense, by rows. Of one that is symmetric only the lower half is read
// by [Factorize], and its rows may end at the diagonal.
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

// Factor is the Cholesky factorization A = LLᵀ of a positive definite matrix.
// gonum's own type computes its condition as well, which takes longer than it.
type Factor struct{ upper blas64.Triangular } // Lᵀ

const (
	// firstJitter is the first multiple of the largest entry of the diagonal that
	// is added to an indefinite matrix; it grows tenfold until that suffices.
	firstJitter = 1e-12
	mostJitters = 16
	// boundless stands for the diagonal of a matrix that is not finite.
	boundless = 1e300
)

// Factorize factors a matrix. To one that rounding has made indefinite it adds
// jitter on the diagonal. One that is not finite becomes a very large multiple of
// the identity, so that solutions are 0.
func Factorize(m Matrix) *Factor {
	a := mat.NewSymDense(len(m), nil)
	for i, row := range m {
		for j, x := range row[:i+1] {
			a.SetSym(i, j, x)
		}
	}
	return FactorizeSym(a)
}

// FactorizeSym is [Factorize] of gonum's matrix, whose diagonal it may change.
func FactorizeSym(a *mat.SymDense) *Factor {
	n, largest := a.SymmetricDim(), 0.0
	for i := range n {
		largest = max(largest, a.At(i, i))
	}
	if largest == 0 {
		largest = 1
	}
	var f Factor
	jitter := firstJitter * largest
	for range mostJitters {
		if f.factorize(a) {
			return &f
		}
		for i := range n {
			a.SetSym(i, i, a.At(i, i)+jitter)
		}
		jitter *= 10
	}
	a.Zero()
	for i := range n {
		a.SetSym(i, i, boundless)
	}
	f.factorize(a)
	return &f
}

func (f *Factor) factorize(a *mat.SymDense) (definite bool) {
	work := a.RawSymmetric()
	work.Data = slices.Clone(work.Data)
	f.upper, definite = lapack64.Potrf(work)
	return definite
}

// Solve is A⁻¹b.
func (f *Factor) Solve(b []float64) []float64 {
	return f.SolveMatrix(mat.NewVecDense(len(b), b)).RawMatrix().Data
}

// SolveMatrix is A⁻¹B.
func (f *Factor) SolveMatrix(b mat.Matrix) *mat.Dense {
	x := mat.DenseCopyOf(b)
	lapack64.Potrs(f.upper, x.RawMatrix())
	return x
}

// Lower is L.
func (f *Factor) Lower() *mat.TriDense {
	l := mat.NewTriDense(f.upper.N, mat.Lower, nil)
	for i := range f.upper.N {
		for j := range i + 1 {
			l.SetTri(i, j, f.upper.Data[j*f.upper.Stride+i])
		}
	}
	return l
}

// Whiten replaces b by L⁻¹b and returns it: its squared length is bᵀA⁻¹b.
func (f *Factor) Whiten(b []float64) []float64 {
	blas64.Trsv(blas.Trans, f.upper, blas64.Vector{N: len(b), Data: b, Inc: 1})
	return b
}

// LogDeterminant is the natural logarithm of the determinant of A.
func (f *Factor) LogDeterminant() float64 {
	sum := 0.0
	for i := range f.upper.N {
		sum += 2 * math.Log(f.upper.Data[i*f.upper.Stride+i])
	}
	return sum
}
