// Package advice answers: what do a study's results say about its space?
//
// It looks for two things. The best trials lie at one end of a parameter's range,
// and the nearer to it, the better. Or trials fail where a parameter has some
// values. Whether that is more than chance is judged by the trials alone that were
// drawn without a model: those of a model crowd around the best ones, and so share
// whatever values these happen to have. It is claimed where chance would show as
// much with a probability below Level, all questions of its kind together
// (Bonferroni's correction).
//
// The package is pure; the same trials give the same answer.
package advice

import (
	"cmp"
	"math"
	"slices"

	"gonum.org/v1/gonum/stat/distuv"

	"github.com/tandem-tune/tandem/study/correlation"
	"github.com/tandem-tune/tandem/study/space"
)

const (
	// Level is the probability that a kind of advice is given where nothing is.
	Level = 0.05
	// Least is how many trials drawn without a model an answer needs.
	Least = 15
	// best is the share of trials that count as the best ones.
	best = 0.2
	// outer is the share of a range that counts as its end.
	outer = 0.1
)

// Trial is one trial with how it came out.
type Trial struct {
	Configuration space.Configuration
	// Drawn says that no model proposed it.
	Drawn bool
	// Score is larger for better ones; NaN is the worst.
	Score float64
}

// Piece is one finding, with the counts that it stands on.
type Piece struct {
	Parameter string
	// High says that the values concerned are at the upper end of an ordered parameter.
	High bool
	// Values are the lowest and the highest that trials inside have, once if they are
	// the same.
	Values []space.Value
	// Inside counts the trials with these values, and Hits those of them that are
	// among the best, or failed. Outside and Misses count the others alike.
	Hits, Inside, Misses, Outside int
	// Rank is the rank correlation between the parameter and the score, over the
	// trials drawn without a model (of Ranges).
	Rank float64
	// Drawn is how many these are.
	Drawn int
	// Chance is the probability of as much if the parameter did nothing.
	Chance float64
}

// Ranges names the parameters at an end of whose range the best trials lie, with the
// leading one. The trials were measured with one budget.
func Ranges(s space.Space, trials []Trial, leading space.Configuration) []Piece {
	list := labels(trials)
	t := newTable(s, list)
	leader := t.cube.Encode(leading)
	questions := 0
	var found []Piece
	for d, dimension := range t.cube.Dimensions() {
		if dimension.Kind == space.Unordered {
			continue
		}
		questions += 2
		for _, high := range []bool{false, true} {
			inside := func(u float64) bool { return atEnd(dimension, s.Parameters[d], u, high) }
			piece, ok := t.count(d, inside)
			if !ok || !inside(leader[d]) || !crowded(piece) {
				continue
			}
			piece.High = high
			piece.Rank, piece.Drawn = rank(t, trials, d)
			direction := piece.Rank
			if !high {
				direction = -direction
			}
			if piece.Drawn >= Least {
				piece.Chance = chance(direction, piece.Drawn)
				found = append(found, piece)
			}
		}
	}
	return proven(found, questions)
}

// crowded says if most of the best lie at the end of the range, or most of those
// there are of the best.
func crowded(p Piece) bool {
	return p.Hits >= p.Misses || p.Hits >= 3 && 2*p.Hits >= p.Inside
}

// labels marks the best trials.
func labels(trials []Trial) []labelled {
	order, list := make([]int, len(trials)), make([]labelled, len(trials))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(trials[b].Score, trials[a].Score) }) // NaN is the smallest
	for at, place := range order {
		list[place] = labelled{trials[place].Configuration, at < int(math.Ceil(best*float64(len(order))))}
	}
	return list
}

// rank is the rank correlation over the trials drawn without a model that have the
// parameter, and how many these are.
func rank(t table, trials []Trial, d int) (float64, int) {
	var at, worth []float64
	for i, one := range trials {
		if one.Drawn && !math.IsNaN(t.points[i][d]) {
			at, worth = append(at, t.points[i][d]), append(worth, one.Score)
		}
	}
	return correlation.Spearman(at, worth), len(at)
}

// chance is the one-sided probability of a rank correlation as large if there is
// none (Kendall and Stuart's approximation by Student's t).
func chance(rho float64, count int) float64 {
	if math.IsNaN(rho) {
		return 1
	}
	free := float64(count - 2)
	return 1 - distuv.StudentsT{Sigma: 1, Nu: free}.CDF(rho*math.Sqrt(free/max(1e-12, 1-rho*rho)))
}

// atEnd says if a coordinate is in the outer part of the range, or the last of
// few values.
func atEnd(dimension space.Dimension, p space.Parameter, u float64, high bool) bool {
	share := outer
	switch {
	case dimension.Kind == space.Ordered:
		share = 1 / float64(dimension.Choices)
	case p.Type == space.IntType && !p.Log:
		share = max(share, 1/((p.High-p.Low)/max(p.Step, 1)+1))
	}
	if high {
		return u >= 1-share
	}
	return u <= share
}

// Failed names the parameters with values at which trials fail: failed are those that
// did, well those that were measured, all drawn without a model.
func Failed(s space.Space, failed, well []space.Configuration) []Piece {
	if len(failed) == 0 || len(failed)+len(well) < Least {
		return nil
	}
	var list []labelled
	for i, c := range slices.Concat(failed, well) {
		list = append(list, labelled{c, i < len(failed)})
	}
	t := newTable(s, list)
	var found []Piece
	questions := 0
	ask := func(d int, high bool, inside func(float64) bool) {
		questions++
		if piece, ok := t.count(d, inside); ok {
			piece.High, piece.Drawn = high, len(list)
			piece.Chance = fisher(piece.Hits, piece.Inside, piece.Misses, piece.Outside)
			found = append(found, piece)
		}
	}
	for d, dimension := range t.cube.Dimensions() {
		if dimension.Kind == space.Unordered {
			for choice := range dimension.Choices {
				ask(d, false, func(u float64) bool { return dimension.Choice(u) == choice })
			}
			continue
		}
		for tenth := 1; tenth < 10; tenth++ {
			bound := float64(tenth) / 10
			ask(d, false, func(u float64) bool { return u <= bound })
			ask(d, true, func(u float64) bool { return u > bound })
		}
	}
	return proven(found, questions)
}

// Holds reports whether the configuration has one of the values concerned.
func (p Piece) Holds(c space.Configuration) bool {
	value, has := c[p.Parameter]
	if !has || value == p.Values[0] {
		return has
	}
	low, _ := p.Values[0].Number()
	high, _ := p.Values[len(p.Values)-1].Number()
	number, is := value.Number()
	return is && low <= number && number <= high
}

// Shared is the value of another parameter which all that failed inside have, and none that
// was measured there: if there is one, it takes both.
func (p Piece) Shared(s space.Space, failed, well []space.Configuration) (name string, value space.Value, found bool) {
	inside := func(list []space.Configuration) []space.Configuration {
		return slices.DeleteFunc(slices.Clone(list), func(c space.Configuration) bool { return !p.Holds(c) })
	}
	failed, well = inside(failed), inside(well)
	for _, one := range s.Parameters {
		if one.Name == p.Parameter || len(one.Values) == 0 || len(failed) == 0 || len(well) == 0 {
			continue
		}
		value := failed[0][one.Name]
		has := func(c space.Configuration) bool { return c[one.Name] == value }
		if !value.IsZero() && !slices.ContainsFunc(well, has) && !slices.ContainsFunc(failed, func(c space.Configuration) bool { return !has(c) }) {
			return one.Name, value, true
		}
	}
	return "", value, false
}

// proven are the pieces that chance does not explain, the surest of each parameter,
// in the order of the space.
func proven(found []Piece, questions int) []Piece {
	var list []Piece
	for _, one := range found {
		if one.Chance = min(1, one.Chance*float64(questions)); one.Chance >= Level {
			continue
		}
		if last := len(list) - 1; last < 0 || list[last].Parameter != one.Parameter {
			list = append(list, one)
		} else if one.Chance < list[last].Chance {
			list[last] = one
		}
	}
	return list
}
