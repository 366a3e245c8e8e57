package search

import "math"

// bracket is one run of successive halving. It compares its trials with each
// other only.
type bracket struct {
	start   int // the rung at which its trials start
	created int
	// halved is set when a trial went up from the starting rung.
	halved bool
	rungs  []rung // from start to the top
	// over is set when nobody goes up any more. It is no part of the state: it
	// spares looking again.
	over bool
}

// next returns a trial that goes up by the rung, counted from the bracket's
// start, and its place there. The place is negative if there is none now; the
// rung is then the one that still waits for outcomes, or the top one if there
// will be none ever.
func (b *bracket) next(eta int) (from, place int) {
	top := len(b.rungs) - 1
	expected := b.created
	for from := range top {
		r := &b.rungs[from]
		if len(r.entries) < expected {
			return from, -1
		}
		quota := b.quota(from, eta)
		if place := r.best(min(quota, len(r.entries))); place >= 0 {
			return from, place
		}
		// Too many failures leave fewer than the table has places for.
		expected = min(quota, r.usable())
	}
	return top, -1
}

// quota is how many go up from the rung, counted from the bracket's start:
// Hyperband's floor(n · eta^-(i+1)), with n as many as the bracket got.
func (b *bracket) quota(from, eta int) int {
	n := b.created
	for i := 0; i <= from && n > 0; i++ {
		n /= eta
	}
	return n
}

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
