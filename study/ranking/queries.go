// Package ranking orders a study's trials, and shows them: the leaderboard, the
// Pareto front, lists, columns, curves and the timeline.
//
// Everything here reads an immutable copy of a study, and changes nothing.
package ranking

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// Store reads what trials reported, and a study's log.
type Store interface {
	Reports(ctx context.Context, id trial.ID) ([]trial.Report, error)
	Events(ctx context.Context, study string, after int64, limit int) ([]journal.Event, error)
}

// Queries are the use cases that show a study's trials. They are safe for
// concurrent use.
type Queries struct {
	store   Store
	options Options
}

// Options are what Queries take from their surroundings.
type Options struct {
	// Look returns a copy of the study with the reference, Deployments how the model of one
	// of its trials is best run.
	Look        func(ctx context.Context, ref string) (journal.View, error)
	Deployments func(ctx context.Context, ref string, number int) (protocol.Deployments, error)
	Now         func() time.Time
}

// New returns the queries over what the store has.
func New(store Store, options Options) *Queries {
	return &Queries{store, options}
}
