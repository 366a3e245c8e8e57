package advice

import (
	"cmp"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/correlation"
	"github.com/tandem-tune/tandem/study/space"
)

// mostTurning bounds the trials of which pairs are looked at: the first ones.
const mostTurning = 1000

// Pair is two parameters of which the second says which way the first is better.
type Pair struct {
	Parameter, With string
	// Values are the lowest and the highest of the second on its one side, once if they
	// are the same.
	Values []space.Value
	// Inside and Outside are the rank correlations between the first and the score on
	// that side and on the other; Trials counts the trials of both.
	Inside, Outside float64
	Trials          [2]int
	// Chance is the probability of as much if one of the two sides had no correlation.
	Chance float64
}

// Turns names the parameters of which larger values are better on one side of another
// parameter, and worse on its other side, the surest side of each pair. The sides are
// below and above the middle of an ordered parameter, and each choice and the others.
// Both correlations must be there (an intersection-union test), so a scale of the score
// that bends, or values that only matter more on a side, are not enough.
func Turns(s space.Space, trials []Trial) []Pair {
	trials = slices.DeleteFunc(slices.Clone(trials), func(t Trial) bool { return !t.Drawn })
	trials = trials[:min(len(trials), mostTurning)]
	t := newTable(s, labels(trials))
	var found []Pair
	questions := 0
	for d, dimension := range t.cube.Dimensions() {
		if dimension.Kind == space.Unordered {
			continue
		}
		for with := range t.cube.Dimensions() {
			if with == d {
				continue
			}
			for _, inside := range t.sides(with) {
				questions += 2
				if one, ok := t.turn(trials, d, with, inside); ok {
					found = append(found, one)
				}
			}
		}
	}
	var list []Pair
	slices.SortStableFunc(found, func(a, b Pair) int { return cmp.Compare(a.Chance, b.Chance) })
	for _, one := range found {
		one.Chance = min(1, one.Chance*float64(questions))
		known := slices.ContainsFunc(list, func(p Pair) bool {
			return p.Parameter == one.Parameter && p.With == one.With || p.Parameter == one.With && p.With == one.Parameter
		})
		if one.Chance < Level && !known {
			list = append(list, one)
		}
	}
	return list
}

// sides are the parts of a parameter that are compared with what is left of it.
func (t table) sides(d int) []func(float64) bool {
	if dimension := t.cube.Dimensions()[d]; dimension.Kind == space.Unordered {
		sides := make([]func(float64) bool, dimension.Choices)
		for choice := range sides {
			sides[choice] = func(u float64) bool { return dimension.Choice(u) == choice }
		}
		return sides
	}
	var all []float64
	for _, point := range t.points {
		if !math.IsNaN(point[d]) {
			all = append(all, point[d])
		}
	}
	if len(all) == 0 {
		return nil
	}
	slices.Sort(all)
	middle := all[(len(all)-1)/2]
	return []func(float64) bool{func(u float64) bool { return u <= middle }}
}

// turn compares a parameter's correlation with the score on both sides of another; false
// where it has one sign on both, or a side has too few trials.
func (t table) turn(trials []Trial, d, with int, inside func(float64) bool) (Pair, bool) {
	pair := Pair{Parameter: t.space.Parameters[d].Name, With: t.space.Parameters[with].Name}
	var at, worth [2][]float64
	low, high := -1, -1
	for i, point := range t.points {
		u, other := point[d], point[with]
		if math.IsNaN(u) || math.IsNaN(other) {
			continue
		}
		side := 1
		if inside(other) {
			side = 0
			if low < 0 || other < t.points[low][with] {
				low = i
			}
			if high < 0 || other > t.points[high][with] {
				high = i
			}
		}
		at[side], worth[side] = append(at[side], u), append(worth[side], trials[i].Score)
	}
	pair.Trials = [2]int{len(at[0]), len(at[1])}
	if min(pair.Trials[0], pair.Trials[1]) < Least {
		return Pair{}, false
	}
	pair.Inside, pair.Outside = correlation.Spearman(at[0], worth[0]), correlation.Spearman(at[1], worth[1])
	pair.Values = []space.Value{trials[low].Configuration[pair.With]}
	if top := trials[high].Configuration[pair.With]; top != pair.Values[0] {
		pair.Values = append(pair.Values, top)
	}
	pair.Chance = max(chance(math.Abs(pair.Inside), pair.Trials[0]), chance(math.Abs(pair.Outside), pair.Trials[1]))
	return pair, pair.Inside*pair.Outside < 0
}

// Climb is how the results of the later half of a search go.
type Climb struct {
	// Rank is the rank correlation between the order of the trials and their score.
	Rank   float64
	Trials int
	// Chance is the probability of as much if the order did not matter.
	Chance float64
}

// Climbs says whether a search still gets better: the later of its trials, in the order
// in which they were made, are better than the earlier ones. It looks at the second half
// and answers false where chance would show as much.
func Climbs(trials []Trial) (Climb, bool) {
	later := trials[len(trials)/2:]
	if len(later) < Least {
		return Climb{}, false
	}
	order, worth := make([]float64, len(later)), make([]float64, len(later))
	for i, one := range later {
		order[i], worth[i] = float64(i), one.Score
	}
	found := Climb{Rank: correlation.Spearman(order, worth), Trials: len(later)}
	found.Chance = chance(found.Rank, found.Trials)
	return found, found.Chance < Level
}
