package api

import (
	"context"
	"sync"
)

// attempts lets the attempts of one logical call through one after the other.
// A client whose connection broke calls again while the first attempt may still
// be at work: the second must find the first one's answer, not the state that
// the first one is just leaving behind.
type attempts struct {
	mutex sync.Mutex
	// inside holds, for each key with an attempt under way, a channel that is
	// closed when that attempt has ended.
	inside map[string]chan struct{}
}

// enter waits until no other attempt with the key is under way, and returns
// what to call when this one has ended. The error is the context's.
func (a *attempts) enter(ctx context.Context, key string) (leave func(), err error) {
	ended := make(chan struct{})
	for {
		a.mutex.Lock()
		other, busy := a.inside[key]
		if !busy {
			a.inside[key] = ended
		}
		a.mutex.Unlock()
		if !busy {
			return func() { a.leave(key, ended) }, nil
		}
		select {
		case <-other:
		case <-ctx.Done():
			return nil, ctx.Err()
		}
	}
}

func (a *attempts) leave(key string, ended chan struct{}) {
	a.mutex.Lock()
	defer a.mutex.Unlock()
	delete(a.inside, key)
	close(ended)
}
