package cmaes

import (
	"math"
	"math/rand/v2"
)

// Restarts says how cma-es goes on when it has arrived somewhere.
type Restarts string

// The ways to go on.
const (
	// IPOP doubles the population with every restart (Auger and Hansen 2005).
	IPOP Restarts = "ipop"
	// BIPOP takes turns between such large populations and small ones with a
	// small step, so that both get the same number of trials (Hansen 2009).
	BIPOP Restarts = "bipop"
	// NoRestarts stays where it arrived.
	NoRestarts Restarts = "none"
)

// Known reports whether it is one of the ways there are.
func (r Restarts) Known() bool { return r == IPOP || r == BIPOP || r == NoRestarts }

// OrDefault is IPOP where nothing was chosen: the simpler one, and in our
// measurements no worse.
func (r Restarts) OrDefault() Restarts {
	if r == "" {
		return IPOP
	}
	return r
}

// ledger counts what runs with large and with small populations have spent.
type ledger struct {
	smallest, largest int // population of the first run, and of the last large one
	small             int // population of the present run, if it is a small one; else 0
	spent             [2]int
}

// size is the population of the present run.
func (l *ledger) size() int {
	if l.small > 0 {
		return l.small
	}
	return l.largest
}

// spend counts outcomes of the present run. The first run, which both regimes
// have in common, counts for the large ones.
func (l *ledger) spend(outcomes int) {
	if l.small > 0 {
		l.spent[1] += outcomes
	} else {
		l.spent[0] += outcomes
	}
}

// restart chooses the next run's population, and returns its first step as a
// share of the usual one.
func (l *ledger) restart(restarts Restarts, r *rand.Rand) float64 {
	if restarts == BIPOP && l.spent[1] < l.spent[0] {
		ratio := float64(l.largest) / float64(l.smallest) / 2
		power := r.Float64()
		l.small = max(l.smallest, int(float64(l.smallest)*math.Pow(ratio, power*power)))
		return math.Pow(10, -2*r.Float64())
	}
	l.small, l.largest = 0, 2*l.largest
	return 1
}
