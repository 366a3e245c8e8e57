// Package gate lets one long computation through at a time.
package gate

import "context"

// Gate is taken by one caller at a time. Unlike a mutex, waiting for it ends with
// a context.
type Gate chan struct{}

// New returns a gate that is free.
func New() Gate { return make(Gate, 1) }

// Enter waits for its turn. The error is the context's.
func (g Gate) Enter(ctx context.Context) error {
	select {
	case g <- struct{}{}:
		return nil
	case <-ctx.Done():
		return ctx.Err()
	}
}

// TryEnter enters if that needs no waiting.
func (g Gate) TryEnter() bool {
	select {
	case g <- struct{}{}:
		return true
	default:
		return false
	}
}

// Leave lets the next one in.
func (g Gate) Leave() { <-g }
