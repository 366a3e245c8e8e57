package artifact

import "sync"

// mostWaiting bounds the models that wait to be measured.
const mostWaiting = 16

// Bench has a worker measure the models of its trials, one after the other, beside what
// trains. The zero value is ready, and safe for concurrent use.
type Bench struct {
	turn    sync.Mutex // held by the one that is measured
	mutex   sync.Mutex
	waiting map[string]chan struct{} // by architecture; closed when it was measured
}

// run has the architecture measured when it is its turn; false if it waits for that
// already, or too many do.
func (b *Bench) run(key string, measure func()) bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	if _, known := b.waiting[key]; known || len(b.waiting) >= mostWaiting {
		return false
	}
	if b.waiting == nil {
		b.waiting = make(map[string]chan struct{})
	}
	done := make(chan struct{})
	b.waiting[key] = done
	go func() {
		b.turn.Lock()
		measure()
		b.turn.Unlock()
		b.mutex.Lock()
		delete(b.waiting, key)
		b.mutex.Unlock()
		close(done)
	}()
	return true
}

// Wait returns when nothing waits any more.
func (b *Bench) Wait() {
	for {
		var next chan struct{}
		b.mutex.Lock()
		for _, next = range b.waiting {
			break
		}
		b.mutex.Unlock()
		if next == nil {
			return
		}
		<-next
	}
}
