package gp

import (
	"slices"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/surrogate"
)

// chosen returns at most as many entries: of more, a third are the best ones, a
// third the newest of the others, and a third is spread over the rest.
func chosen(entries []ladder.Entry, most int) []ladder.Entry {
	if len(entries) <= most {
		return entries
	}
	best, others := entries[:most/3], slices.Clone(entries[most/3:])
	slices.SortFunc(others, func(a, b ladder.Entry) int { return b.Trial - a.Trial })
	newest, rest := others[:most/3], others[most/3:]
	slices.SortFunc(rest, ladder.Entry.Compare)
	return slices.Concat(best, newest, ladder.SpreadOut(rest, most-2*(most/3)))
}

// observed turns entries into points and standardized values.
func observed(h *ladder.History, entries []ladder.Entry, s surrogate.Standard) surrogate.Level {
	var level surrogate.Level
	for _, e := range entries {
		level.Points = append(level.Points, h.Points[e.Trial])
		level.Values = append(level.Values, s.Of(e.Worth()))
	}
	return level
}

// standardOf is made from a ranking.
func standardOf(ranking []ladder.Entry) surrogate.Standard {
	scores := make([]float64, len(ranking))
	for i, e := range ranking {
		scores[i] = e.Worth()
	}
	return surrogate.NewStandard(scores)
}
