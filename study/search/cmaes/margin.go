package cmaes

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// widen keeps a chance of every axis with steps to leave the step that the mean
// is on: 1/(n λ) at least. Without it an integer would be decided as soon as
// the deviation is below its step (CMA-ES with margin, Hamano et al. 2022,
// section 4). Only the mean and the axis's scale move, the covariance does not.
func (r *run) widen() {
	margin := 1 / float64(len(r.axes)*r.size)
	g := r.normal
	for i, d := range r.axes {
		low, high, stepped := r.cube.Share(d, g.mean[i])
		if !stepped || low <= 0 && high >= 1 {
			continue
		}
		deviation := g.deviation(i)
		switch {
		case low <= 0:
			// The mean is at an end: it comes as near to the next step as needed.
			g.mean[i] = max(g.mean[i], high-deviation*quantile(margin))
		case high >= 1:
			g.mean[i] = min(g.mean[i], low+deviation*quantile(margin))
		default:
			down, up := tail((g.mean[i]-low)/deviation), tail((high-g.mean[i])/deviation)
			if down >= margin/2 && up >= margin/2 {
				continue
			}
			down, up = share(down, up, margin)
			a, b := quantile(down), quantile(up)
			g.mean[i] = (low*b + high*a) / (a + b)
			g.scale[i] *= (high - low) / (a + b) / deviation
		}
	}
}

// share raises the chances of going down and up to half the margin each, and
// takes what the larger one can spare for it in proportion.
func share(down, up, margin float64) (newDown, newUp float64) {
	stay := 1 - down - up
	raisedDown, raisedUp := max(down, margin/2), max(up, margin/2)
	over := 1 - raisedDown - raisedUp - stay // not positive
	spare := raisedDown + raisedUp + stay - 1.5*margin
	return raisedDown + over/spare*(raisedDown-margin/2), raisedUp + over/spare*(raisedUp-margin/2)
}

// tail is the chance of a standard normal draw above z.
func tail(z float64) float64 { return math.Erfc(z/math.Sqrt2) / 2 }

// quantile is the z with the given tail.
func quantile(tail float64) float64 { return math.Sqrt2 * math.Erfcinv(2*tail) }

// choice is a distribution over the values of a categorical.
type choice struct {
	dimension int // of the cube
	chances   []float64
}

func newChoice(dimension, values int) choice {
	c := choice{dimension: dimension, chances: make([]float64, values)}
	for i := range c.chances {
		c.chances[i] = 1 / float64(values)
	}
	return c
}

func (c choice) draw(r *rand.Rand) int {
	left := r.Float64()
	for i, chance := range c.chances {
		if left -= chance; left < 0 {
			return i
		}
	}
	return len(c.chances) - 1
}

// learn moves the chances towards the values of the good members, at the rate
// of the step size's path: the natural gradient for a categorical.
func (c *choice) learn(population []member, s strategy, d space.Dimension) {
	gained, total := make([]float64, len(c.chances)), 0.0
	for i, m := range population {
		u := m.point[c.dimension]
		if w := s.weights[i]; w > 0 && !math.IsNaN(u) {
			gained[d.Choice(u)] += w
			total += w
		}
	}
	for k := range c.chances {
		c.chances[k] += s.cSigma * (gained[k] - total*c.chances[k])
	}
}

// leaving is the least chance with which a draw leaves the likeliest value of
// one of n categoricals: one in four leaves that of any.
func leaving(n int) float64 { return 1 - math.Pow(0.75, 1/float64(n)) }

// widen keeps a chance for every value, one of n categoricals (as CatCMA's
// margin does, Hamano et al. 2024).
func (c *choice) widen(n int) {
	values := len(c.chances)
	if values < 2 {
		return
	}
	least := min(leaving(n)/float64(values-1), 1/float64(values))
	above, raised := 0.0, 0.0
	for k, chance := range c.chances {
		if chance < least {
			raised += least - chance
			c.chances[k] = least
		} else {
			above += chance - least
		}
	}
	if raised == 0 {
		return
	}
	for k, chance := range c.chances {
		if above > 0 && chance > least {
			c.chances[k] -= raised * (chance - least) / above
		}
	}
}

// arrived reports whether one value has nearly all that the margin leaves it.
func (c choice) arrived(n int) bool {
	most := 0.0
	for _, chance := range c.chances {
		most = max(most, chance)
	}
	return len(c.chances) < 2 || most > 0.95*(1-leaving(n))
}
