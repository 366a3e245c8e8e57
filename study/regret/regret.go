// Package regret answers: how much could still be gained if a study went on?
//
// It is the bound of Makarova et al. (Automatic Termination for Hyperparameter
// Optimization, AutoML 2022): a Gaussian process of what was measured says how
// good any configuration may be at best, and how good the best measured one is
// at least; the difference bounds the regret, if the process is right. Values
// of cheaper rungs are part of the process (package surrogate). It is an
// estimate: its confidence is that of the model, which is fitted to the same
// few values.
//
// The package is pure; the same observations give the same bound.
package regret

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/surrogate"
)

const (
	// Confidence is the nominal chance that the bound holds for all of the
	// study, as the paper has it.
	Confidence = 0.9
	// leastBelow is how many results a rung below the top needs to say something.
	leastBelow = 6
	// The largest numbers of results in the model, of each rung, and when its
	// parameters are fitted.
	most, mostFitted = 150, 80
	// The search for the most promising place: uniform points, then rounds of
	// steps from the best ones.
	uniform, climbers, rounds, steps = 500, 8, 8, 8
	// seed is of the points tried: any will do, and it is always the same.
	seed = 0x72656772
)

// Observation is a configuration's result at a rung.
type Observation struct {
	Configuration space.Configuration
	Rung          int
	// Score is larger for better ones; NaN for a training that diverged.
	Score float64
}

// Bound is the answer.
type Bound struct {
	// Value is how much more the best configuration of the space may have than
	// the best measured one, in the unit of the scores.
	Value float64
	// Results is how many results at the top rung it stands on.
	Results int
}

// Least is how many results at the top rung a bound needs.
func Least(s space.Space) int { return 2*len(s.Parameters) + 5 }

// Of bounds the regret at the top rung. It answers false while there are fewer
// than Least results there, or when they cannot be told apart.
func Of(s space.Space, top int, observations []Observation) (Bound, bool) {
	cube := s.Cube()
	rungs := make([][]Observation, top+1)
	for _, o := range observations {
		rungs[o.Rung] = append(rungs[o.Rung], o)
	}
	if len(rungs[top]) < Least(s) {
		return Bound{}, false
	}
	var levels []surrogate.Level
	var unit float64
	for i, results := range rungs {
		if i < top && len(results) < max(leastBelow, len(s.Parameters)+1) {
			continue
		}
		level, standard := levelOf(cube, results)
		levels, unit = append(levels, level), standard.Unit()
	}
	if !(unit > 0) || math.IsInf(unit, 0) {
		return Bound{}, false
	}
	few := spread(levels[0], mostFitted)
	parameters := surrogate.Fit(cube.Dimensions(), few.Points, few.Values)
	m := model{
		cube: cube, ladder: surrogate.NewLadder(cube.Dimensions(), parameters, levels),
		width: math.Sqrt(beta(len(s.Parameters), len(rungs[top]))),
	}
	measured := levels[len(levels)-1].Points
	sure := math.Inf(-1)
	for _, point := range measured {
		mean, variance := m.ladder.Predict(point)
		sure = max(sure, mean-m.width*math.Sqrt(variance))
	}
	return Bound{Value: max(m.highest(measured)-sure, 0) * unit, Results: len(rungs[top])}, true
}

// betaShare is how much of the theorem's β is used. The paper takes a fifth. That
// ended studies of rippled functions too early (go run ./bench/regret), and all
// of it ended hardly any.
const betaShare = 0.5

// beta is the square of the half width of the confidence band, in standard
// deviations (Srinivas et al. 2010, theorem 1).
func beta(dimensions, results int) float64 {
	d, t := float64(dimensions), float64(results)
	return betaShare * 2 * math.Log(d*t*t*math.Pi*math.Pi/(6*(1-Confidence)))
}

// levelOf is a rung's results, standardized, the best first; of too many, a
// third are the best ones and the others spread over the rest.
func levelOf(cube *space.Cube, results []Observation) (surrogate.Level, surrogate.Standard) {
	ranked := slices.Clone(results)
	for i := range ranked {
		if math.IsNaN(ranked[i].Score) {
			ranked[i].Score = math.Inf(-1)
		}
	}
	slices.SortStableFunc(ranked, func(a, b Observation) int { return cmp.Compare(b.Score, a.Score) })
	scores := make([]float64, len(ranked))
	for i, o := range ranked {
		scores[i] = o.Score
	}
	standard := surrogate.NewStandardAbove(scores, lowest(scores))
	var level surrogate.Level
	for _, o := range ranked {
		level.Points = append(level.Points, cube.Encode(o.Configuration))
		level.Values = append(level.Values, standard.Of(o.Score))
	}
	if len(ranked) <= most {
		return level, standard
	}
	best := surrogate.Level{Points: level.Points[:most/3], Values: level.Values[:most/3]}
	rest := spread(surrogate.Level{Points: level.Points[most/3:], Values: level.Values[most/3:]}, most-most/3)
	return surrogate.Level{Points: slices.Concat(best.Points, rest.Points), Values: slices.Concat(best.Values, rest.Values)}, standard
}

// lowest is the score below which the worst tenth of the scores are: failures
// and wild values leave the scale to the others, who still tell how different
// configurations can be.
func lowest(scores []float64) float64 {
	usable := len(scores)
	for usable > 0 && math.IsInf(scores[usable-1], -1) {
		usable--
	}
	if usable == 0 {
		return math.Inf(-1)
	}
	return scores[min(usable-1, usable*9/10)]
}

// spread returns at most as many results, evenly spread over the ranking.
func spread(level surrogate.Level, most int) surrogate.Level {
	n := len(level.Points)
	if n <= most {
		return level
	}
	var few surrogate.Level
	for i := range most {
		at := i * n / most
		few.Points, few.Values = append(few.Points, level.Points[at]), append(few.Values, level.Values[at])
	}
	return few
}

// model is the process with its confidence band.
type model struct {
	cube   *space.Cube
	ladder *surrogate.Ladder
	width  float64
}

// place is a point with the upper end of its confidence band.
type place struct {
	point []float64
	upper float64
}

func (m model) at(point []float64) (place, bool) {
	if !surrogate.Settle(m.cube, point) {
		return place{}, false
	}
	mean, variance := m.ladder.Predict(point)
	return place{point, mean + m.width*math.Sqrt(variance)}, true
}

// highest is the highest upper end that it finds anywhere in the space.
func (m model) highest(measured [][]float64) float64 {
	r := rand.New(rand.NewPCG(seed, seed))
	dimensions := m.cube.Dimensions()
	var list []place
	for range uniform {
		point := make([]float64, len(dimensions))
		for d := range point {
			point[d] = r.Float64()
		}
		if p, ok := m.at(point); ok {
			list = append(list, p)
		}
	}
	for _, point := range measured {
		mean, variance := m.ladder.Predict(point)
		list = append(list, place{point, mean + m.width*math.Sqrt(variance)})
	}
	slices.SortStableFunc(list, func(a, b place) int { return cmp.Compare(b.upper, a.upper) })
	highest := math.Inf(-1)
	for i := range min(climbers, len(list)) {
		width := 0.15
		for range rounds {
			for range steps {
				if p, ok := m.at(surrogate.Near(dimensions, list[i].point, width, r)); ok && p.upper > list[i].upper {
					list[i] = p
				}
			}
			width *= 0.6
		}
		highest = max(highest, list[i].upper)
	}
	return highest
}
