package record

import "sync"

// Health remembers the first failure after which a store is not to be trusted.
type Health struct {
	broken chan struct{}
	mutex  sync.Mutex
	cause  error
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
