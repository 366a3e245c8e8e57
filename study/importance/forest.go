package importance

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// The forest's size and its bounds. An answer must not take a server's time
// for long, so what is looked at shrinks as the space grows.
const (
	maxTrees   = 48
	leastTrees = 16
	// maxUsed and leastUsed bound how many trials a forest is grown from.
	maxUsed, leastUsed = 2000, 200
	// work bounds trees × trials × parameters: the cells that are looked at on
	// each level of the trees.
	work = 2_000_000
	// rounding is the share of all squared error below which a difference is
	// one of the arithmetic.
	rounding = 1e-12
	// fences is how many times the distance of the outer tenths a bad value may
	// lie below them before it is pulled in.
	fences = 3
)

// Forest is a regression forest (Breiman 2001) that predicts a configuration's
// score from those that were measured: a surrogate, with which paths and
// variances are computed that nobody measured. The same observations grow the
// same forest.
//
// A parameter that exists only under conditions is split on only below splits
// that make sure it exists. So every leaf is a box in the space, and variances
// can be computed exactly.
type Forest struct {
	space space.Space
	cube  *space.Cube
	axes  []axis
	trees []tree
	// gains is how much of the squared error the splits on each parameter took away.
	gains []float64
	// Trials is how many observations there were, Used how many of them, drawn
	// evenly, the forest was grown from.
	Trials, Used int
	// Pulled is how many of those used were so bad, or no numbers, that Floor
	// was counted in their place.
	Pulled int
	Floor  float64
	// Explained is the share of the scores' variance that the trees predict for
	// observations they did not see (the out-of-bag R²). At 0 and below the
	// forest predicts nothing.
	Explained float64
}

// Doubtful is the share of the variance (see Explained) that a forest must
// predict to be asked for anything: forests of pure noise stay below it.
const Doubtful = 0.05

// Growth is how the trees of a forest are grown: Leaf is how many draws a leaf has at
// least, and Share the part of the parameters, from 0 to 1, that each split chooses
// from.
type Growth struct {
	Leaf  int
	Share float64
}

// bounds are how many trees a forest of so many parameters has, and from how many
// observations at most they are grown.
func bounds(parameters int) (trees, used int) {
	used = min(maxUsed, max(leastUsed, work/(maxTrees*max(parameters, 1))))
	return min(maxTrees, max(leastTrees, work/(used*max(parameters, 1)))), used
}

// Grow grows a forest from the observations; it is nil for fewer than Least.
func Grow(s space.Space, observations []Observation) *Forest {
	if len(observations) < Least {
		return nil
	}
	return GrowBy(s, observations, Growth{Leaf: 3, Share: 0.7})
}

// GrowBy grows a forest from one observation or more.
func GrowBy(s space.Space, observations []Observation, by Growth) *Forest {
	trees, most := bounds(len(s.Parameters))
	return grow(s, observations, by, trees, most)
}

func grow(s space.Space, observations []Observation, by Growth, trees, most int) *Forest {
	f := &Forest{space: s, cube: s.Cube(), Trials: len(observations), gains: make([]float64, len(s.Parameters))}
	used := drawn(observations, most)
	f.Used = len(used)
	points, scores := make([][]float64, len(used)), make([]float64, len(used))
	for i, observation := range used {
		points[i], scores[i] = f.cube.Encode(observation.Configuration), observation.Score
	}
	f.Floor, f.Pulled = pullIn(scores)
	f.axes = newAxes(s, f.cube, points)
	bins := make([][]uint8, len(points))
	for i, point := range points {
		bins[i] = f.bins(point)
	}
	columns := make([][]uint8, len(f.axes))
	for d := range columns {
		for i := range bins {
			columns[d] = append(columns[d], bins[i][d])
		}
	}
	least := rounding * squares(scores)
	sums, votes := make([]float64, len(used)), make([]int, len(used))
	for number := range trees {
		random := rand.New(rand.NewPCG(seed, uint64(number)))
		bag, inside := bootstrap(random, len(used))
		g := &grower{Growth: by, axes: f.axes, columns: columns, scores: scores, gains: f.gains, random: random, least: least}
		one := g.tree(bag)
		f.trees = append(f.trees, one)
		for i := range used {
			if !inside[i] {
				sums[i] += one.predict(bins[i])
				votes[i]++
			}
		}
	}
	f.Explained = explained(scores, sums, votes)
	return f
}

// drawn returns at most so many of the observations, always the same ones.
func drawn(observations []Observation, most int) []Observation {
	if len(observations) <= most {
		return observations
	}
	random := rand.New(rand.NewPCG(seed, uint64(len(observations))))
	list := make([]Observation, most)
	for i, at := range random.Perm(len(observations))[:most] {
		list[i] = observations[at]
	}
	return list
}

// bootstrap draws as many places as there are, with repetitions.
func bootstrap(random *rand.Rand, count int) (bag []int32, inside []bool) {
	bag, inside = make([]int32, count), make([]bool, count)
	for i := range bag {
		at := random.IntN(count)
		bag[i], inside[at] = int32(at), true
	}
	return bag, inside
}

// pullIn replaces what is no number, and what lies far below all others, by the
// floor: one diverged training would hide every difference between the rest.
func pullIn(scores []float64) (floor float64, pulled int) {
	sorted := finite(scores)
	if len(sorted) == 0 {
		clear(scores)
		return 0, len(scores)
	}
	floor = sorted[0]
	lower, upper := sorted[len(sorted)/10], sorted[len(sorted)-1-len(sorted)/10]
	if fence := lower - fences*(upper-lower); upper > lower && !math.IsInf(fence, 0) {
		floor = max(floor, fence)
	}
	for i, score := range scores {
		switch {
		case math.IsNaN(score) || score < floor:
			scores[i] = floor
			pulled++
		case math.IsInf(score, 1):
			scores[i] = sorted[len(sorted)-1]
			pulled++
		}
	}
	return floor, pulled
}

// squares is the sum of the squared distances from the mean.
func squares(scores []float64) float64 {
	mean, sum := 0.0, 0.0
	for _, score := range scores {
		mean += score / float64(len(scores))
	}
	for _, score := range scores {
		sum += (score - mean) * (score - mean)
	}
	return sum
}

// explained is the out-of-bag R² of the votes; 0 if nothing varies.
func explained(scores, sums []float64, votes []int) float64 {
	if slices.Min(scores) == slices.Max(scores) {
		return 0
	}
	mean, count := 0.0, 0.0
	for i, score := range scores {
		if votes[i] > 0 {
			mean += score
			count++
		}
	}
	mean /= max(count, 1)
	wrong, all := 0.0, 0.0
	for i, score := range scores {
		if votes[i] > 0 {
			away, off := score-mean, score-sums[i]/float64(votes[i])
			wrong += off * off
			all += away * away
		}
	}
	if !(all > 0) || math.IsInf(all, 1) {
		return 0
	}
	return max(1-wrong/all, -1)
}

// Gains are by how much the splits on each parameter of the space, in its order, took
// away of the squared error.
func (f *Forest) Gains() []float64 { return f.gains }

// Prediction is what a forest says of a configuration nobody need have tried.
type Prediction struct {
	// Score is the mean of the trees, Spread their standard deviation.
	Score, Spread float64
}

// Predict predicts the score of a configuration of the space.
func (f *Forest) Predict(configuration space.Configuration) Prediction {
	bins := f.bins(f.cube.Encode(configuration))
	sum, square := 0.0, 0.0
	for _, one := range f.trees {
		score := one.predict(bins)
		sum += score
		square += score * score
	}
	n := float64(len(f.trees))
	mean := sum / n
	return Prediction{Score: mean, Spread: math.Sqrt(max(0, square/n-mean*mean))}
}

func (f *Forest) bins(point []float64) []uint8 {
	bins := make([]uint8, len(point))
	for d, u := range point {
		bins[d] = f.axes[d].bin(u)
	}
	return bins
}
