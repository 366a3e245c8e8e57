package probing

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/study/system"
)

const (
	// maxPoints bounds what is measured: beyond it the points with the fewest
	// epochs are left out.
	maxPoints = 256
	// maxScaled bounds the points for which the scales of the effects are fitted;
	// with more of them the measurements outweigh the prior anyway.
	maxScaled = 48
)

// Model is what the observations say of the costs.
type Model struct {
	prior  prior
	points []point
	// epochs counts, for each point, those that can be compared: of runs that
	// have another point. Counted has of these the ones that need not be measured
	// again, and measured counts all.
	epochs, counted, measured []int
	// What follows is of the points: precision adds to the inverse of the prior's
	// covariance, and slope is it times the observed means.
	precision *mat.SymDense
	slope     []float64
	posterior
}

// part is one observation of a run in the terms of the model.
type part struct {
	at     int
	weight float64
	cost   float64
	epochs int
	counts bool // its epochs need not be measured again
}

// posterior is the part that depends on the prior's scales.
type posterior struct {
	// mean is α with E f(x) = k(x)·α, core M with Cov(f(x), f(y)) =
	// k(x, y) - k(x)·M·k(y), k being the prior's covariances with the points.
	mean []float64
	core *mat.Dense
	// evidence is the logarithm of the observations' likelihood, up to a constant.
	evidence float64
}

// Fit learns from the observations; those that say nothing (no epochs, no finite
// cost) are left out. The grid is what will be chosen from; observations of
// other configurations and knobs count as well.
func Fit(grid []system.Configuration, observations []Observation) *Model {
	m := &Model{}
	observations = m.place(ordered(observations))
	known := slices.Clone(grid)
	for _, one := range m.points {
		known = append(known, one.configuration)
	}
	m.prior = newPrior(known)
	m.weigh(observations)
	m.posterior = m.solve(m.prior)
	if len(m.points) <= maxScaled {
		m.scale()
	}
	return m
}

// place finds the points and returns the observations at them.
func (m *Model) place(observations []Observation) []Observation {
	places := map[place]int{}
	var points []point
	var epochs []int
	for _, one := range observations {
		p := one.point()
		at, ok := places[p.place]
		if !ok {
			at = len(points)
			places[p.place] = at
			points, epochs = append(points, p), append(epochs, 0)
		}
		epochs[at] += one.Epochs
	}
	order := make([]int, len(points))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int {
		return cmp.Or(cmp.Compare(epochs[b], epochs[a]), cmp.Compare(points[a].key, points[b].key), cmp.Compare(points[a].neighbours, points[b].neighbours),
			cmp.Compare(whole(points[a].first), whole(points[b].first)))
	})
	for _, at := range order[:min(len(order), maxPoints)] {
		m.points, m.measured = append(m.points, points[at]), append(m.measured, epochs[at])
	}
	return slices.DeleteFunc(observations, func(one Observation) bool {
		return m.at(one.point()) < 0
	})
}

// at is the index of the point, -1 when nothing was measured there.
func (m *Model) at(p point) int { return slices.IndexFunc(m.points, p.same) }

// weigh makes the runs, and from them the precision and the slope: with weights w
// in a run, diag(w) - wwᵀ/Σw is the precision that is left when the run's level
// is integrated out.
func (m *Model) weigh(observations []Observation) {
	m.slope, m.epochs, m.counted = make([]float64, len(m.points)), make([]int, len(m.points)), make([]int, len(m.points))
	if len(m.points) > 0 {
		m.precision = mat.NewSymDense(len(m.points), nil)
	}
	pooled := epochVariance(observations)
	others := make([]int, len(m.points))
	for _, one := range observations {
		if one.Deviation > 0 {
			others[m.at(one.point())]++
		}
	}
	var runs [][]part
	for i, one := range observations {
		if i == 0 || one.Run != observations[i-1].Run {
			runs = append(runs, nil)
		}
		last := &runs[len(runs)-1]
		*last = append(*last, part{
			at: m.at(one.point()), weight: one.weight(pooled, others[m.at(one.point())]),
			cost: one.LogCost, epochs: one.Epochs, counts: one.Deviation <= trusted,
		})
	}
	for _, parts := range runs {
		total, level := level(parts)
		alone := !slices.ContainsFunc(parts, func(p part) bool { return p.at != parts[0].at })
		for _, one := range parts {
			if !alone {
				m.epochs[one.at] += one.epochs
				if one.counts {
					m.counted[one.at] += one.epochs
				}
			}
			m.precision.SetSym(one.at, one.at, m.precision.At(one.at, one.at)+one.weight)
			m.slope[one.at] += one.weight * (one.cost - level)
			for _, other := range parts {
				if one.at <= other.at {
					m.precision.SetSym(one.at, other.at, m.precision.At(one.at, other.at)-one.weight*other.weight/total)
				}
			}
		}
	}
}

// level is the weighted mean of a run's costs, and the weights' sum.
func level(parts []part) (total, level float64) {
	for _, one := range parts {
		total += one.weight
		level += one.weight * one.cost
	}
	return total, level / total
}

// solve finds the posterior under the prior. With K = CCᵀ and A the precision of
// the observations, the posterior covariance (K⁻¹+A)⁻¹ is C(I+CᵀAC)⁻¹Cᵀ.
func (m *Model) solve(p prior) posterior {
	n := len(m.points)
	if n == 0 {
		return posterior{}
	}
	k := mat.NewSymDense(n, nil)
	for i, a := range m.points {
		for j, b := range m.points[:i+1] {
			k.SetSym(i, j, p.covariance(a, b))
		}
		k.SetSym(i, i, k.At(i, i)+1e-9)
	}
	c := regression.FactorizeSym(k).Lower()
	var ac, cac, core mat.Dense
	ac.Mul(m.precision, c)
	cac.Mul(c.T(), &ac)
	within := mat.NewSymDense(n, nil)
	for i := range n {
		for j := range i + 1 {
			within.SetSym(i, j, cac.At(i, j))
		}
		within.SetSym(i, i, 1+cac.At(i, i))
	}
	factor := regression.FactorizeSym(within)
	// (I+AK)⁻¹ = I - AC(I+CᵀAC)⁻¹Cᵀ, and M is that times A.
	core.Mul(&ac, factor.SolveMatrix(ac.T()))
	core.Sub(m.precision, &core)
	result := posterior{core: &core}
	toward := times(c.T(), m.slope)
	inward := factor.Solve(toward)
	for i, change := range times(&ac, inward) {
		result.mean = append(result.mean, m.slope[i]-change)
	}
	result.evidence = (regression.Dot(toward, inward) - factor.LogDeterminant()) / 2
	return result
}

// times is the product with a vector; a matrix without rows is nil.
func times(m mat.Matrix, v []float64) []float64 {
	if len(v) == 0 {
		return nil
	}
	out := mat.NewVecDense(len(v), nil)
	out.MulVec(m, mat.NewVecDense(len(v), v))
	return out.RawVector().Data
}

// scale fits how much each knob matters, and how much they do together: the
// scales that make the observations likeliest, one after the other. Smaller ones
// have to be likelier by some factor, as few measurements favour them too easily.
func (m *Model) scale() {
	type trial struct {
		value, handicap float64
	}
	better := func(trials []trial, set func(*prior, float64)) {
		best := m.evidence
		for _, one := range trials {
			changed := prior{knobs: slices.Clone(m.prior.knobs), together: m.prior.together}
			set(&changed, one.value)
			if found := m.solve(changed); found.evidence-one.handicap > best {
				best = found.evidence - one.handicap
				m.prior, m.posterior = changed, found
			}
		}
	}
	for i := range m.prior.knobs {
		better([]trial{{0.12, 0.5}, {0.03, 1}}, func(p *prior, v float64) { p.knobs[i].scale = v })
	}
	better([]trial{{0.01, 0.5}, {0.15, 1}}, func(p *prior, v float64) { p.together = v })
}

// belief is what the model says of one point: its covariances with the points.
type belief struct {
	point  point
	shared []float64 // prior covariances with the points
	solved []float64 // M times those
	weight float64
	mean   float64
}

func (m *Model) belief(c Candidate) belief {
	b := belief{point: pointOf(c.Configuration, c.Neighbours), weight: c.LogWeight}
	for _, one := range m.points {
		b.shared = append(b.shared, m.prior.covariance(b.point, one))
	}
	b.solved = times(m.core, b.shared)
	b.mean = c.LogWeight + regression.Dot(b.shared, m.posterior.mean)
	return b
}

// covariance is the posterior one of two beliefs.
func (m *Model) covariance(a, b belief) float64 {
	return m.prior.covariance(a.point, b.point) - regression.Dot(a.shared, b.solved)
}

// Ratio is the expected logarithm of the cost of an epoch of a minus that of b,
// and its standard deviation. The candidates' weights are not in it. Nothing but
// the prior speaks where no run measured two configurations.
func (m *Model) Ratio(a, b Candidate) (logRatio, deviation float64) {
	a.LogWeight, b.LogWeight = 0, 0
	return m.ratio(m.belief(a), m.belief(b))
}

func (m *Model) ratio(a, b belief) (logRatio, deviation float64) {
	if a.point.same(b.point) {
		return a.weight - b.weight, 0
	}
	variance := m.covariance(a, a) + m.covariance(b, b) - 2*m.covariance(a, b)
	return a.mean - b.mean, math.Sqrt(max(0, variance))
}
