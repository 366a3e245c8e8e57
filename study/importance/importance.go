// Package importance answers: which parameters made the good trials good?
//
// It is PED-ANOVA (Watanabe, Bansal and Hutter, IJCAI 2023): a parameter is
// important if its values among the best trials are distributed differently
// from its values among all trials, which the Pearson divergence of two
// one-dimensional densities measures (the paper's equation for the space of
// the trials themselves, so a search that draws unevenly is accounted for).
//
// The paper's number is never zero, however little a parameter does. So each
// comes with the probability that chance alone gives as much: the share of
// random sets of trials, as large as the set of the best, whose divergence is
// at least as large. The package is pure; the same trials give the same answer.
package importance

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

const (
	// best is the share of trials that count as the good ones (the paper's γ'),
	// leastBest how many they are at least, as its authors advise.
	best      = 0.1
	leastBest = 5
	// Least is how many trials an answer needs.
	Least = 2 * leastBest
	// cells is into how many cells the range of a number is divided.
	cells = 50
	// draws is how many random sets each divergence is compared with, drawn
	// with a fixed seed.
	draws = 1000
	seed  = 0x1e57
)

// Observation is one trial: its configuration, and how good it was, the larger
// the better. NaN is the worst.
type Observation struct {
	Configuration space.Configuration
	Score         float64
}

// Parameter is one parameter's part in the best trials.
type Parameter struct {
	Name string
	// Share is its part of all parameters' divergences; the shares sum to 1,
	// unless nothing diverges at all.
	Share float64
	// Chance is the probability of as large a divergence if the parameter did
	// nothing, in steps of one in a thousand. Above 0.05 or so the share means
	// nothing.
	Chance float64
}

// Result is the answer for one set of trials.
type Result struct {
	// Trials is how many were looked at, Best how many of them count as good.
	Trials, Best int
	// Parameters has the most important first; it is empty for fewer than
	// Least trials.
	Parameters []Parameter
}

// Of measures the parameters' importance for being among the best trials.
//
// A conditional parameter is judged within the trials that have it, and counts
// by their share.
func Of(s space.Space, observations []Observation) Result {
	result := Result{Trials: len(observations)}
	if result.Trials < Least {
		return result
	}
	result.Best = max(leastBest, int(math.Ceil(best*float64(result.Trials))))
	good := leaders(observations, result.Best)
	random := randomSets(result.Trials, result.Best)
	cube := s.Cube()
	points := make([][]float64, len(observations))
	for i, observation := range observations {
		points[i] = cube.Encode(observation.Configuration)
	}
	sum := 0.0
	for d, dimension := range cube.Dimensions() {
		column := newColumn(dimension, points, d)
		divergence := column.divergence(good)
		as := 1 // the set of the best is one of the possible ones
		for _, set := range random {
			if column.divergence(set) >= divergence {
				as++
			}
		}
		sum += divergence
		result.Parameters = append(result.Parameters, Parameter{
			Name: dimension.Name, Share: divergence, Chance: float64(as) / float64(len(random)+1),
		})
	}
	for i := range result.Parameters {
		if sum > 0 {
			result.Parameters[i].Share /= sum
		}
	}
	slices.SortStableFunc(result.Parameters, func(a, b Parameter) int { return cmp.Compare(b.Share, a.Share) })
	return result
}

// leaders returns the places of the best observations.
func leaders(observations []Observation, count int) []int {
	places := make([]int, len(observations))
	for i := range places {
		places[i] = i
	}
	slices.SortStableFunc(places, func(a, b int) int {
		x, y := observations[a].Score, observations[b].Score
		if math.IsNaN(x) || math.IsNaN(y) {
			return cmp.Compare(worse(x), worse(y))
		}
		return cmp.Compare(y, x)
	})
	return places[:count]
}

// worse is 1 for NaN, which stands behind every number.
func worse(score float64) int {
	if math.IsNaN(score) {
		return 1
	}
	return 0
}

// randomSets draws sets of places, always the same ones.
func randomSets(of, size int) [][]int {
	random := rand.New(rand.NewPCG(seed, uint64(of)))
	sets := make([][]int, draws)
	for i := range sets {
		sets[i] = random.Perm(of)[:size]
	}
	return sets
}
