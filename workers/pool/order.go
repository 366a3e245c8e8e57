package pool

import (
	"slices"
	"time"
)

// Candidate is a study that may have work for a free worker.
type Candidate struct {
	Study    string
	Priority int
	// Running is how many of its trials workers hold now.
	Running int
	Created time.Time
}

// Order sorts the candidates as a free worker should try them: the highest
// priority first, then the one with the fewest running trials, so that studies
// of one priority share the workers evenly, then the oldest.
func Order(candidates []Candidate) {
	slices.SortStableFunc(candidates, func(a, b Candidate) int {
		switch {
		case a.Priority != b.Priority:
			return b.Priority - a.Priority
		case a.Running != b.Running:
			return a.Running - b.Running
		default:
			return a.Created.Compare(b.Created)
		}
	})
}
