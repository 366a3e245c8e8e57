package pool

import (
	"cmp"
	"slices"
	"time"
)

// Candidate is a study that may have work for a free worker.
type Candidate struct {
	Study string
	// Owner is the user whose study it is; empty: the administrators.
	Owner    string
	Priority int
	// Share is its owner's weighted dominant share of the pool.
	Share float64
	// Running is how many of its trials workers hold now.
	Running int
	Created time.Time
}

// Order sorts the candidates as a free worker should try them: the highest
// priority first; within a priority those of the owner with the least share of
// the pool, so that users have equal dominant shares (Ghodsi et al., NSDI 2011,
// algorithm 1: the next task is one of the user with the lowest); of those the
// study with the fewest running trials, so that the studies of a user share
// evenly; then the oldest.
func Order(candidates []Candidate) {
	slices.SortStableFunc(candidates, func(a, b Candidate) int { return Compare(&a, &b) })
}

// Compare puts the candidate first that [Order] does.
func Compare(a, b *Candidate) int {
	switch {
	case a.Priority != b.Priority:
		return cmp.Compare(b.Priority, a.Priority)
	case a.Share != b.Share:
		return cmp.Compare(a.Share, b.Share)
	case a.Running != b.Running:
		return cmp.Compare(a.Running, b.Running)
	}
	return a.Created.Compare(b.Created)
}
