// Package analysis answers questions about a study's results: which parameters
// matter, how the study came to its best value.
//
// Everything here reads an immutable copy of a study, and changes nothing.
package analysis

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/study/journal"
)

// eventPage is how many events are read at once.
const eventPage = 5000

// Store reads what was logged and learned.
type Store interface {
	Events(ctx context.Context, study string, after int64, limit int) ([]journal.Event, error)
}

// Options are what Queries take from their surroundings.
type Options struct {
	// Look returns a copy of the study with the reference.
	Look func(ctx context.Context, ref string) (journal.View, error)
	// Leader returns the number of the leading trial; nil if there is none.
	Leader func(journal.View) *int
	// Gate lets one long computation run at a time.
	Gate gate.Gate
	Now  func() time.Time
}

// Queries are the use cases that analyse studies. They are safe for concurrent use.
type Queries struct {
	store  Store
	look   func(ctx context.Context, ref string) (journal.View, error)
	leader func(journal.View) *int
	now    func() time.Time
	// gate guards trajectories, by study.
	gate         gate.Gate
	trajectories map[string]*trajectory
}

// New returns the queries over what the store has.
func New(store Store, options Options) *Queries {
	return &Queries{
		store: store, look: options.Look, leader: options.Leader, now: options.Now, gate: options.Gate,
		trajectories: make(map[string]*trajectory),
	}
}
