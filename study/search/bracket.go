package search

import "math"

// brackets deals out starting rungs.
//
// Hyperband (Li et al. 2018, algorithm 1) runs brackets one after the other:
// with s_max + 1 rungs, the bracket that starts s rungs below the top has
//
//	n_s = ceil((s_max + 1) / (s + 1) · eta^s)
//
// configurations. Without barriers there is no "after": new trials are dealt to
// the starting rungs in these proportions instead, each time to the rung that
// is furthest behind its share. A study that ends early so has the same mix as
// one that runs on.
type brackets struct {
	share []float64 // by starting rung; they sum to 1
}

// newBrackets uses the lowest limit starting rungs of the ladder, 0 meaning all.
func newBrackets(rungs, eta, limit int) brackets {
	if limit == 0 || limit > rungs {
		limit = rungs
	}
	share := make([]float64, limit)
	total := 0.0
	for start := range share {
		share[start] = bracketSize(rungs-1, rungs-1-start, eta)
		total += share[start]
	}
	for start := range share {
		share[start] /= total
	}
	return brackets{share: share}
}

// bracketSize is Hyperband's n_s. The product comes first: it is exact as long
// as it fits in 53 bits, so that 5 · 9 / 3 is 15 and is not rounded up to 16.
func bracketSize(top, s, eta int) float64 {
	return math.Ceil(float64(top+1) * math.Pow(float64(eta), float64(s)) / float64(s+1))
}

// next is the starting rung of the next trial, given how many trials started
// at each rung so far; of equals the cheapest.
func (b brackets) next(started []int) int {
	total := 1
	for _, n := range started {
		total += n
	}
	best, furthest := 0, math.Inf(-1)
	for start, share := range b.share {
		if behind := share*float64(total) - float64(started[start]); behind > furthest {
			best, furthest = start, behind
		}
	}
	return best
}
