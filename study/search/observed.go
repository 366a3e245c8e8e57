package search

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/surrogate"
)

// spreadOut returns at most as many entries, evenly spread over the ranking.
func spreadOut(entries []entry, most int) []entry {
	n := min(len(entries), most)
	few := make([]entry, n)
	for i := range few {
		few[i] = entries[i*len(entries)/n]
	}
	return few
}

// chosen returns at most as many entries: of more, a third are the best ones, a
// third the newest of the others, and a third is spread over the rest.
func chosen(entries []entry, most int) []entry {
	if len(entries) <= most {
		return entries
	}
	best, others := entries[:most/3], slices.Clone(entries[most/3:])
	slices.SortFunc(others, func(a, b entry) int { return b.trial - a.trial })
	newest, rest := others[:most/3], others[most/3:]
	slices.SortFunc(rest, entry.compare)
	return slices.Concat(best, newest, spreadOut(rest, most-2*(most/3)))
}

// observed turns entries into points and standardized values.
func observed(h *history, entries []entry, s standard) surrogate.Level {
	var level surrogate.Level
	for _, e := range entries {
		level.Points = append(level.Points, h.points[e.trial])
		level.Values = append(level.Values, s.of(e))
	}
	return level
}

// standard brings the scores of a ranking to mean 0 and variance 1. A score
// further behind the median than the best one is ahead of it counts as just so
// far behind, and so do failures and trainings that diverged: how bad something
// is tells nothing of where the best is, and would leave no scale for it.
type standard struct{ floor, mean, deviation float64 }

// largest stands for infinity, so that differences are numbers.
const largest = 1e300

func newStandard(ranking []entry) standard {
	r := rung{entries: ranking}
	usable := r.usable()
	if usable == 0 {
		return standard{}
	}
	median := min(ranking[usable/2%usable].score, largest)
	s := standard{floor: median - (min(ranking[0].score, largest) - median)}
	n := float64(len(ranking))
	for _, e := range ranking {
		s.mean += s.clip(e) / n
	}
	for _, e := range ranking {
		off := s.clip(e) - s.mean
		s.deviation += off * off / n
	}
	s.deviation = math.Sqrt(s.deviation)
	return s
}

func (s standard) clip(e entry) float64 {
	if e.failed {
		return s.floor
	}
	return min(max(e.score, s.floor), largest)
}

// of is 0 for all where the scores cannot be told apart.
func (s standard) of(e entry) float64 {
	value := (s.clip(e) - s.mean) / s.deviation
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	return value
}
