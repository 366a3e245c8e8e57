package gp

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/surrogate"
)

const (
	gpUniform = 100 // candidates drawn uniformly
	gpLocal   = 100 // candidates near the best measured points
	gpParents = 6   // such points
	// gpMargin is by how much the best mean must be exceeded before anything
	// counts as gained, in standard deviations of the values.
	gpMargin = 0.1
)

// scored is a candidate with the logarithm of its expected improvement.
type scored struct {
	point []float64
	gain  float64
}

// best returns the configuration with the largest expected improvement that it
// finds among those that are allowed, new, and not close to a pending trial.
func (g *GP) best(h *ladder.History, r *rand.Rand) (space.Configuration, bool) {
	pending := h.Pending()
	mark := g.model.Believed()
	defer g.model.Forget(mark)
	for _, number := range pending[:min(len(pending), gpBelieved)] {
		g.model.Believe(h.Points[number])
	}
	list := g.candidates(h, r)
	slices.SortStableFunc(list, func(a, b scored) int { return cmp.Compare(b.gain, a.gain) })
	for _, c := range list {
		if configuration, ok := propose.Fresh(h, c.point); ok {
			return configuration, true
		}
	}
	return nil, false
}

func (g *GP) candidates(h *ladder.History, r *rand.Rand) []scored {
	dimensions := h.Cube.Dimensions()
	list := make([]scored, 0, gpUniform+gpLocal)
	add := func(point []float64) {
		if c, ok := g.score(h, point); ok {
			list = append(list, c)
		}
	}
	for range gpUniform {
		point := make([]float64, len(dimensions))
		for d := range point {
			point[d] = r.Float64()
		}
		add(point)
	}
	parents := min(gpParents, len(g.incumbents))
	for i := range gpLocal {
		width := [3]float64{0.2, 0.07, 0.02}[i/parents%3]
		add(surrogate.Near(dimensions, g.incumbents[i%parents].point, width, r))
	}
	return list
}

// score masks the point and scores it, unless it is forbidden.
func (g *GP) score(h *ladder.History, point []float64) (scored, bool) {
	if !surrogate.Settle(h.Cube, point) {
		return scored{}, false
	}
	mean, variance := g.model.Predict(point)
	return scored{point, logImprovement(mean-g.incumbents[0].mean-gpMargin, math.Sqrt(variance))}, true
}

// logImprovement is the logarithm of the expected improvement of a normal
// distribution over a bar that lies gap below its mean (Ament et al. 2023):
// finite where the improvement itself is 0 up to rounding.
func logImprovement(gap, deviation float64) float64 {
	if deviation < 1e-9 {
		deviation = 1e-9
	}
	z := gap / deviation
	log := -z*z/2 - math.Log(2*math.Pi)/2 // of the normal density
	if z > -6 {
		log = math.Log(math.Exp(log) + z*math.Erfc(-z/math.Sqrt2)/2)
	} else {
		square := 1 / (z * z)
		log += math.Log(square * (1 - 3*square + 15*square*square))
	}
	return log + math.Log(deviation)
}
