// Package analysis answers questions about a study's results: which parameters
// matter, in which order what was measured.
//
// Everything here reads an immutable copy of a study, and changes nothing.
package analysis

import (
	"context"

	"github.com/tandem-tune/tandem/study/journal"
)

// Queries are the use cases that analyse studies. They are safe for concurrent use.
type Queries struct {
	look   func(ctx context.Context, ref string) (journal.View, error)
	leader func(journal.View) *int
}

// New returns the queries: look returns a copy of the study with the reference, leader
// the number of its leading trial; nil if there is none.
func New(look func(ctx context.Context, ref string) (journal.View, error), leader func(journal.View) *int) *Queries {
	return &Queries{look: look, leader: leader}
}
