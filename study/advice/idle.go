package advice

import (
	"math"
	"math/rand/v2"
	"slices"

	"gonum.org/v1/gonum/mat"

	"github.com/tandem-tune/tandem/internal/regression"
	"github.com/tandem-tune/tandem/study/correlation"
	"github.com/tandem-tune/tandem/study/space"
)

const (
	// LeastIdle is how many trials drawn without a model Idle needs.
	LeastIdle = 40
	// Planted is the effect that an idle parameter is compared with, as a share of the
	// variance of the results' ranks.
	Planted = 0.1
	// mostIdle bounds the trials looked at: the last ones.
	mostIdle = 150
	// shuffles is how often a parameter's values are dealt out anew.
	shuffles = 20
	// excused is how many effects may show less at most.
	excused = 2
	// reach is over which share of its range a parameter's effect bends.
	reach = 0.4
	// tested is the weight of the parameter that is looked at.
	tested = 0.5
)

// Without is a parameter without an effect that could be seen, though one would have been.
type Without struct {
	Parameter string
	// Trials predict each other; Drawn counts those of them that are predicted.
	Trials, Drawn int
	// Gain is by how much of the variance the parameter improves the predictions.
	Gain float64
	// Tries is with how many planted effects it was compared; More of them improved them more.
	Tries, More int
	// Chance is the probability of so little if it had such an effect.
	Chance float64
}

// Idle names the parameters that decide less than the share Planted of how trials rank.
//
// A Gaussian process with a product kernel, of effects and of interactions of any order,
// predicts each trial's rank from the others, with the parameter and without it. To know
// how much better an effect would have made it, the parameter's values are dealt out anew
// among the trials, which takes its own effect away, and an effect of them is added to the
// ranks: a monotone one, one with its best inside, or an interaction with another
// parameter. A parameter is named if it improves the predictions less than 95% of these do.
// With few trials, or much noise, an effect does not show, and nothing is named. Nor is a parameter that others depend on: they would tell its value.
func Idle(s space.Space, trials []Trial) []Without {
	trials = trials[max(0, len(trials)-mostIdle):]
	m := newModel(s, trials)
	if len(m.drawn) < LeastIdle || m.variance == 0 {
		return nil
	}
	m.fit()
	var found []Without
	for d, p := range s.Parameters {
		if bound(s, p.Name) {
			continue
		}
		if one, ok := m.idle(d); ok {
			found = append(found, one)
		}
	}
	return found
}

// bound says if other parameters tell something of the parameter's value.
func bound(s space.Space, name string) bool {
	is := func(c space.Condition) bool { return c.Parameter == name }
	return slices.ContainsFunc(s.Parameters, func(p space.Parameter) bool { return slices.ContainsFunc(p.When, is) }) ||
		slices.ContainsFunc(s.Forbidden, func(f space.Forbidden) bool { return slices.ContainsFunc(f, is) })
}

// model predicts the ranks of trials.
type model struct {
	space    space.Space
	cube     *space.Cube
	points   [][]float64
	ranks    []float64 // with mean 0
	variance float64
	drawn    []int
	kernels  []regression.Matrix // by dimension
	weights  []float64
	noise    float64
}

func newModel(s space.Space, trials []Trial) *model {
	m := &model{space: s, cube: s.Cube(), weights: make([]float64, len(s.Parameters)), noise: 0.1}
	scores := make([]float64, len(trials))
	for i, one := range trials {
		m.points = append(m.points, m.cube.Encode(one.Configuration))
		if scores[i] = one.Score; one.Drawn {
			m.drawn = append(m.drawn, i)
		}
	}
	m.ranks = centred(correlation.Ranks(scores))
	for _, i := range m.drawn {
		m.variance += m.ranks[i] * m.ranks[i] / float64(len(m.drawn))
	}
	for d := range m.weights {
		m.weights[d] = 0.3
		m.kernels = append(m.kernels, m.kernel(d, func(i int) float64 { return m.points[i][d] }))
	}
	return m
}

// kernel has the likeness of each two trials in one parameter.
func (m *model) kernel(d int, at func(int) float64) regression.Matrix {
	k := regression.Square(len(m.points))
	unordered := m.cube.Dimensions()[d].Kind == space.Unordered
	for i := range k {
		for j := range i + 1 {
			a, b := at(i), at(j)
			switch {
			case a == b || math.IsNaN(a) && math.IsNaN(b):
				k[i][j] = 1
			case !unordered && !math.IsNaN(a) && !math.IsNaN(b):
				k[i][j] = math.Exp(-(a - b) * (a - b) / (2 * reach * reach))
			}
		}
	}
	return k
}

// fit chooses the weights and the noise with which the trials predict each other best.
func (m *model) fit() {
	least := math.Inf(1)
	better := func(value *float64, choices ...float64) {
		best := *value
		for _, one := range choices {
			*value = one
			if loss := m.loss(m.inverse(m.product(-1)), m.ranks); loss < least {
				least, best = loss, one
			}
		}
		*value = best
	}
	for range 2 {
		for d := range m.weights {
			better(&m.weights[d], 0.02, 0.1, 0.4, 2)
		}
		better(&m.noise, 0.01, 0.03, 0.1, 0.3, 1)
	}
}

// product is the kernel of all parameters but one.
func (m *model) product(without int) regression.Matrix {
	k := regression.Square(len(m.points))
	for i := range k {
		for j := range i + 1 {
			k[i][j] = 1
			for d, kernel := range m.kernels {
				if d != without {
					k[i][j] *= 1 + m.weights[d]*kernel[i][j]
				}
			}
		}
	}
	return k
}

// inverse is that of the covariance, with the noise.
func (m *model) inverse(k regression.Matrix) *mat.Dense {
	n := len(k)
	unit := mat.NewDense(n, n, nil)
	for i := range k {
		k[i][i] += m.noise * k[i][i]
		unit.Set(i, i, 1)
	}
	return regression.Factorize(k).SolveMatrix(unit)
}

// loss is the mean squared error with which the drawn trials are predicted, each from all
// others (Rasmussen and Williams 2006, equation 5.12).
func (m *model) loss(inverse *mat.Dense, values []float64) float64 {
	sum := 0.0
	for _, i := range m.drawn {
		row := inverse.RawRowView(i)
		off := regression.Dot(row, values) / row[i]
		sum += off * off / float64(len(m.drawn))
	}
	return sum
}

// idle compares a parameter's gain with those of planted effects.
func (m *model) idle(d int) (Without, bool) {
	rest := m.product(d)
	plain := m.inverse(clone(rest))
	gain := func(kernel regression.Matrix) func(values []float64) float64 {
		k := clone(rest)
		for i := range k {
			for j := range i + 1 {
				k[i][j] *= 1 + tested*kernel[i][j]
			}
		}
		with := m.inverse(k)
		return func(values []float64) float64 { return m.loss(plain, values) - m.loss(with, values) }
	}
	one := Without{Parameter: m.space.Parameters[d].Name, Trials: len(m.points), Drawn: len(m.drawn)}
	one.Gain = gain(m.kernels[d])(m.ranks) / m.variance
	r := rand.New(rand.NewPCG(uint64(d), uint64(len(m.points))))
	for range shuffles {
		dealt := m.deal(r, d)
		of := gain(m.kernel(d, func(i int) float64 { return dealt[i] }))
		for _, effect := range m.effects(r, d, dealt) {
			if one.Tries++; of(effect)/m.variance > one.Gain {
				one.More++
			} else if one.Tries-one.More > excused {
				return one, false
			}
		}
	}
	one.Chance = float64(one.Tries-one.More+1) / float64(one.Tries+1)
	return one, one.Chance < Level
}

// deal returns the parameter's values in another order among the trials that have it.
func (m *model) deal(r *rand.Rand, d int) []float64 {
	var has []int
	values := make([]float64, len(m.points))
	for i, point := range m.points {
		if values[i] = point[d]; !math.IsNaN(point[d]) {
			has = append(has, i)
		}
	}
	for at, from := range r.Perm(len(has)) {
		values[has[at]] = m.points[has[from]][d]
	}
	return values
}

// effects are the ranks with an effect of a parameter's values added: monotone, with a
// best inside, and an interaction.
func (m *model) effects(r *rand.Rand, d int, values []float64) [][]float64 {
	way := m.way(r, d)
	other := (d + 1 + r.IntN(max(1, len(m.kernels)-1))) % len(m.kernels)
	turn := m.way(r, other)
	forms := []func(i int) float64{
		func(i int) float64 { return way(values[i]) },
		func(i int) float64 { return way(values[i]) * turn(m.points[i][other]) },
	}
	if m.cube.Dimensions()[d].Kind != space.Unordered {
		forms = append(forms, func(i int) float64 { return way(1) * math.Pow(way(values[i]), 2) })
	}
	list := make([][]float64, len(forms))
	for f, form := range forms {
		effect := make([]float64, len(values))
		for i := range effect {
			if value := form(i); !math.IsNaN(value) {
				effect[i] = value
			}
		}
		effect = centred(effect)
		size := regression.Dot(effect, effect) / float64(len(effect))
		list[f] = slices.Clone(m.ranks)
		for i := range effect {
			list[f][i] += effect[i] * math.Sqrt(Planted*m.variance/max(size, 1e-12))
		}
	}
	return list
}

// way is a direction of a parameter: upwards or downwards, or a sign for each choice.
func (m *model) way(r *rand.Rand, d int) func(u float64) float64 {
	dimension := m.cube.Dimensions()[d]
	sign := float64(2*r.IntN(2) - 1)
	if dimension.Kind != space.Unordered {
		return func(u float64) float64 { return sign * (2*u - 1) }
	}
	first := r.IntN(dimension.Choices)
	return func(u float64) float64 {
		if math.IsNaN(u) {
			return u
		}
		if dimension.Choice(u) == first {
			return sign
		}
		return -sign
	}
}

func clone(m regression.Matrix) regression.Matrix {
	copied := regression.Square(len(m))
	for i, row := range m {
		copy(copied[i], row)
	}
	return copied
}

// centred takes the mean away.
func centred(values []float64) []float64 {
	mean := 0.0
	for _, value := range values {
		mean += value / float64(len(values))
	}
	for i := range values {
		values[i] -= mean
	}
	return values
}
