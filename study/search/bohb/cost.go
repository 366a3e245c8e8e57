package bohb

import (
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/space"
)

// cost is a ridge regression of the logarithm of the seconds for a pass, on the unit cube.
type cost struct {
	beta []float64
	dims []space.Dimension
}

func (c *cost) features(point []float64) []float64 {
	f := []float64{1}
	for d, x := range point {
		if math.IsNaN(x) {
			f = append(f, 0)
			continue
		}
		u := x
		if c.dims[d].Kind != space.Continuous {
			u = float64(c.dims[d].Choice(x)) / math.Max(1, float64(c.dims[d].Choices-1))
		}
		f = append(f, u-0.5)
	}
	return f
}

func newCost(h *ladder.History, weight float64) *cost {
	c := &cost{dims: h.Cube.Dimensions()}
	if weight == 0 || len(h.Paces) < 5 {
		return c
	}
	numbers := make([]int, 0, len(h.Paces))
	for n := range h.Paces {
		numbers = append(numbers, n)
	}
	slices.Sort(numbers)
	p := len(c.features(h.Points[0]))
	a := mat.NewSymDense(p, nil)
	b := mat.NewVecDense(p, nil)
	for _, n := range numbers {
		f := c.features(h.Points[n])
		y := math.Log(h.Paces[n])
		for i := range f {
			b.SetVec(i, b.AtVec(i)+f[i]*y)
			for j := i; j < p; j++ {
				a.SetSym(i, j, a.At(i, j)+f[i]*f[j])
			}
		}
	}
	for i := 1; i < p; i++ {
		a.SetSym(i, i, a.At(i, i)+0.3)
	}
	var chol mat.Cholesky
	if !chol.Factorize(a) {
		return c
	}
	var x mat.VecDense
	if chol.SolveVecTo(&x, b) != nil {
		return c
	}
	c.beta = slices.Clone(x.RawVector().Data)
	c.beta[0] = 0
	return c
}

func (c *cost) of(point []float64) float64 {
	if c.beta == nil {
		return 0
	}
	sum := 0.0
	for i, f := range c.features(point) {
		sum += c.beta[i] * f
	}
	return sum
}
