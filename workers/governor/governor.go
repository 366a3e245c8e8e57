// Package governor changes the rules of the pool: quotas, reservations, and which workers
// are drained. One change is made at a time, and holds once it is durable.
package governor

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/rules"
)

// Options are what a Governor takes from its surroundings.
type Options struct {
	Now   func() time.Time
	NewID func() string
	// Users are the names of the users there are; nil: any name may be one's.
	Users func(context.Context) (map[string]bool, error)
	// Priced reports whether there are prices, by which a quota can bound money.
	Priced bool
	// Find returns the study with the reference, if the caller sees it.
	Find func(ctx context.Context, ref string) (journal.Study, error)
	// Apply makes the entries durable, with the answer that is pointed to under the call's
	// key; nil: without one. ours is false where another request with the same key was
	// faster: then the answer is that one's.
	Apply func(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error)
	// Changed is called when who waits should look again.
	Changed func()
}

// Governor has the use cases that change the pool's rules. It is safe for concurrent use.
type Governor struct {
	allocator *allocator.Allocator
	options   Options
	gate      gate.Gate
}

// New returns the governor of the pool.
func New(pool *allocator.Allocator, options Options) *Governor {
	return &Governor{pool, options, gate.New()}
}

// govern makes a change of the rules durable, with the answer, and then shows it.
func (g *Governor) govern(ctx context.Context, answer any, entries []journal.PoolEntry, change func(*rules.Rules)) error {
	if ours, err := g.options.Apply(ctx, entries, answer); !ours {
		return err
	}
	g.allocator.Govern(change)
	g.options.Changed()
	return nil
}

// Keep does what time alone makes due of the rules: what was spent is
// stored, reservations that are over go, and who waits hears of those that began
// or ended, and of a new day.
func (g *Governor) Keep(ctx context.Context, before, now time.Time, closing bool) (failed error) {
	entries, turned := g.allocator.Due(before, now, closing)
	if len(entries) > 0 {
		_, err := g.options.Apply(ctx, entries, nil)
		g.allocator.Applied(entries, err == nil)
		if err != nil {
			failed = fmt.Errorf("store what is kept of the pool: %w", err)
		}
	}
	if turned { // by the time, whatever of it is stored
		g.options.Changed()
	}
	return failed
}
