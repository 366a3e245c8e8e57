package ladder

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/study/correlation"
)

// The constants of a widened rung; docs/search.md has the measurements.
const (
	widenPairs     = 8   // pairs before a correlation is believed
	widenBelow     = 0.7 // an upper bound below this widens
	widestMultiple = 2.0 // of the usual number, at most
)

// agreement is how a rung's ranking holds one rung further up.
type agreement struct {
	correlation.Estimate
	known bool
	// lower and upper are how many outcomes the two rungs had: rankings only
	// grow, so that these tell whether anything has changed.
	lower, upper int
}

// agreement returns how well the rung ranks as the one above does.
func (h *History) agreement(from int) agreement {
	lower, upper := h.Rungs[from].Entries, h.Rungs[from+1].Entries
	if kept := h.agreements[from]; kept.lower == len(lower) && kept.upper == len(upper) {
		return kept
	}
	var all []float64
	below := make(map[int]float64, len(lower)) // of several objectives only the ranking has a score
	for _, e := range lower {
		if !e.Failed {
			all, below[e.Trial] = append(all, e.Score), e.Score
		}
	}
	var pairs []correlation.Pair
	for _, e := range upper {
		if score, both := below[e.Trial]; both && !e.Failed {
			pairs = append(pairs, correlation.Pair{Lower: score, Upper: e.Score})
		}
	}
	found := agreement{lower: len(lower), upper: len(upper)}
	found.Estimate, found.known = correlation.Between(all, pairs)
	h.agreements[from] = found
	return found
}

// Widened is how many trials may go up from the rung when its ranking says
// little about the next rung's, and why; top when it does not.
func (h *History) Widened(from, top int, eta int) (limit int, why string) {
	a := h.agreement(from)
	if !a.known || a.Pairs < widenPairs || a.CorrectedHigh >= widenBelow {
		return top, ""
	}
	multiple := 1 + (widestMultiple-1)*min((widenBelow-a.CorrectedHigh)/widenBelow, 1)
	limit = min(int(math.Floor(float64(len(h.Rungs[from].Entries))*multiple/float64(eta))), len(h.Rungs[from].Entries))
	return limit, fmt.Sprintf("instead of %d, as this rung ranks hardly as the next one does: correlation at most %.2f (95%% bound, %d trials)",
		top, a.CorrectedHigh, a.Pairs)
}
