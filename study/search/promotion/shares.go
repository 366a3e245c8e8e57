package promotion

import "math"

// shares deals out starting rungs where brackets are not run one by one.
//
// Without barriers there is no "after": new trials are dealt to the starting
// rungs in the proportions of Hyperband's brackets, each time to the rung that
// is furthest behind its share. A study that ends early so has the same mix as
// one that runs on.
type shares []float64 // by starting rung; they sum to 1

// newShares uses the lowest limit starting rungs of the ladder, 0 meaning all.
func newShares(rungs, eta, limit int) shares {
	if limit == 0 || limit > rungs {
		limit = rungs
	}
	s := make(shares, limit)
	total := 0.0
	for start := range s {
		s[start] = bracketSize(rungs-1, rungs-1-start, eta)
		total += s[start]
	}
	for start := range s {
		s[start] /= total
	}
	return s
}

// bracketSize is how many configurations the bracket that starts s rungs below
// the top has, of s_max + 1 rungs (Hyperband; Li et al. 2018, algorithm 1):
//
//	n_s = ceil((s_max + 1) / (s + 1) · eta^s)
//
// The product comes first: it is exact as long as it fits in 53 bits, so that
// 5 · 9 / 3 is 15 and is not rounded up to 16.
func bracketSize(top, s, eta int) float64 {
	return math.Ceil(float64(top+1) * math.Pow(float64(eta), float64(s)) / float64(s+1))
}

// next is the starting rung of the next trial, given how many trials started
// at each rung so far; of equals the cheapest.
func (s shares) next(started []int) int {
	total := 1
	for _, n := range started {
		total += n
	}
	best, furthest := 0, math.Inf(-1)
	for start, share := range s {
		if behind := share*float64(total) - float64(started[start]); behind > furthest {
			best, furthest = start, behind
		}
	}
	return best
}
