package record

import (
	"errors"
	"slices"
	"sync"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Health remembers the first failure after which a store is not to be trusted, and whether
// the newest commit found no room.
type Health struct {
	broken chan struct{}
	mutex  sync.Mutex
	cause  error
	full   error
}

// NewHealth is that of a store that works.
func NewHealth() *Health { return &Health{broken: make(chan struct{})} }

// Broken is closed when the store has failed.
func (h *Health) Broken() <-chan struct{} { return h.broken }

// Err returns why the store is broken, nil while it is not.
func (h *Health) Err() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.cause
}

// Break makes the first cause the answer to everything.
func (h *Health) Break(cause error) error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if h.cause == nil {
		h.cause = cause
		close(h.broken)
	}
	return h.cause
}

// Committed notes the outcomes of a commit, which passes them on.
func (h *Health) Committed(outcomes []error) []error {
	full := slices.IndexFunc(outcomes, func(err error) bool { return errors.Is(err, problem.ErrDiskFull) })
	h.mutex.Lock()
	defer h.mutex.Unlock()
	if full >= 0 {
		h.full = outcomes[full]
	} else if slices.Contains(outcomes, nil) {
		h.full = nil
	}
	return outcomes
}

// Full is why nothing can be stored for want of room, as far as the newest commit tells;
// nil where it found some.
func (h *Health) Full() error {
	h.mutex.Lock()
	defer h.mutex.Unlock()
	return h.full
}
