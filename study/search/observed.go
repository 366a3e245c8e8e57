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
func observed(h *history, entries []entry, s surrogate.Standard) surrogate.Level {
	var level surrogate.Level
	for _, e := range entries {
		level.Points = append(level.Points, h.points[e.trial])
		level.Values = append(level.Values, s.Of(e.worth()))
	}
	return level
}

// standardOf is made from a ranking.
func standardOf(ranking []entry) surrogate.Standard {
	scores := make([]float64, len(ranking))
	for i, e := range ranking {
		scores[i] = e.worth()
	}
	return surrogate.NewStandard(scores)
}

// worth is the score, and -Inf for a failure and for what misses the constraints.
func (e entry) worth() float64 {
	if e.failed || e.violation > 0 {
		return math.Inf(-1)
	}
	return e.score
}
