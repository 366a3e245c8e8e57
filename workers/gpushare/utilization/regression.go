package utilization

import (
	"cmp"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/importance"
	"github.com/tandem-tune/tandem/study/space"
)

// Model is two regressions.
type Model struct {
	// Samples is how many profiles it was learned from.
	Samples             int
	utilization, memory regression
}

// regression predicts one logarithm.
type regression struct {
	// forest is nil for the mean of all.
	forest  *importance.Forest
	columns space.Space
	mean    float64
	// residual is how far predictions of what was not seen were off, the root of the
	// mean square; of a forest in units of how far its trees were apart there, so that a
	// prediction is less sure where they disagree.
	residual float64
}

// leastSpread is added to how far trees are apart: where all agree, the
// prediction is not certain.
const leastSpread = 0.02

// say is the mean, and what a residual is counted in there.
func (r *regression) say(x []float64) (mean, unit float64) {
	if r.forest == nil {
		return r.mean, 1
	}
	said := r.forest.Predict(configuration(r.columns, x))
	return said.Score, leastSpread + said.Spread
}

// predict is the mean and the deviation of the logarithm.
func (r *regression) predict(x []float64) (mean, deviation float64) {
	mean, unit := r.say(x)
	return mean, unit * r.residual
}

// fit learns with the method.
func fit(inputs [][]float64, targets []float64, method Method) regression {
	if method == Mean {
		r := regression{}
		for _, value := range targets {
			r.mean += value / float64(len(targets))
		}
		return r
	}
	r := regression{columns: spaceOf(inputs)}
	observations := make([]importance.Observation, len(inputs))
	for i, x := range inputs {
		observations[i] = importance.Observation{Configuration: configuration(r.columns, x), Score: targets[i]}
	}
	// A third of the columns at each split (Breiman, 2001), and leaves of one profile.
	r.forest = importance.GrowBy(r.columns, observations, importance.Growth{Leaf: 1, Share: 1.0 / 3})
	return r
}

// spaceOf is the space that the profiles lie in, a parameter for each column.
func spaceOf(inputs [][]float64) space.Space {
	var s space.Space
	for j, name := range columns() {
		p := space.Parameter{Name: name, Type: space.FloatType, Low: math.Inf(1), High: math.Inf(-1)}
		for _, x := range inputs {
			p.Low, p.High = min(p.Low, x[j]), max(p.High, x[j])
		}
		p.High += 1e-6 // of profiles that are all alike
		s.Parameters = append(s.Parameters, p)
	}
	return s
}

// configuration is a profile in the space, or what is nearest to it there.
func configuration(of space.Space, x []float64) space.Configuration {
	c := make(space.Configuration, len(x))
	for j, p := range of.Parameters {
		c[p.Name] = space.Float(min(max(x[j], p.Low), p.High))
	}
	return c
}

// Importance is how much a column decides.
type Importance struct {
	Name  string
	Share float64 // of all columns together
}

// Importances are those of the columns for the utilization, the largest first: by
// how much of the squared error their splits took away.
func (m *Model) Importances() []Importance {
	var list []Importance
	total := 0.0
	for j, gain := range m.utilization.forest.Gains() {
		list = append(list, Importance{Name: columns()[j], Share: gain})
		total += gain
	}
	for j := range list {
		if total > 0 {
			list[j].Share /= total
		}
	}
	slices.SortStableFunc(list, func(a, b Importance) int { return cmp.Compare(b.Share, a.Share) })
	return list
}
