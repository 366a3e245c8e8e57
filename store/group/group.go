// Package group lets changes that come at the same time share one commit.
//
// One goroutine takes what is queued and hands it to the store as a group.
// While it waits for the disk, further changes queue; they share the next
// commit. Its one invariant: changes are committed in the order in which they
// were handed in, each exactly once, and each gets exactly one outcome. It must
// not know what a change is, nor SQL.
package group

import (
	"context"
	"runtime"
	"sync"
	"sync/atomic"

	"github.com/tandem-tune/tandem/store/record"
	"github.com/tandem-tune/tandem/study/journal"
)

// Most is how many changes share a commit at most.
const Most = 256

// Writer commits what others hand in. It is safe for concurrent use.
type Writer[C any] struct {
	commit func([]C) []error
	after  func()
	queue  chan operation[C]
	ended  chan struct{}

	mutex   sync.RWMutex // guards stopped against sends on queue
	stopped bool

	waiting atomic.Int64
}

// operation is one change and where its outcome goes.
type operation[C any] struct {
	change  C
	outcome *journal.Outcome
}

// Start returns a Writer that commits with the function: it makes the group
// durable and returns the outcome of each change, in their order. after, if set,
// is called behind each group, when its callers have been answered.
func Start[C any](commit func([]C) []error, after func()) *Writer[C] {
	w := &Writer[C]{commit: commit, after: after, queue: make(chan operation[C], Most), ended: make(chan struct{})}
	go w.loop()
	return w
}

// Do hands the change in and returns once it is durable or refused.
func (w *Writer[C]) Do(ctx context.Context, change C) error { return w.Submit(ctx, change).Wait() }

// Submit queues the change for the next group. A caller can give up until the
// change is queued; from then on only the outcome is an honest answer.
func (w *Writer[C]) Submit(ctx context.Context, change C) *journal.Outcome {
	one := operation[C]{change: change, outcome: journal.NewOutcome()}
	w.waiting.Add(1)
	if err := w.enqueue(ctx, one); err != nil {
		w.settle(one, err)
	}
	return one.outcome
}

// Waiting is how many changes are queued or being written now.
func (w *Writer[C]) Waiting() int64 { return w.waiting.Load() }

// Stop ends the writer behind what is queued; what comes later is refused as
// unavailable. Further calls do nothing.
func (w *Writer[C]) Stop() {
	w.mutex.Lock()
	already := w.stopped
	w.stopped = true
	w.mutex.Unlock()
	if !already {
		close(w.queue)
	}
	<-w.ended
}

func (w *Writer[C]) settle(one operation[C], err error) {
	w.waiting.Add(-1)
	one.outcome.Settle(err)
}

func (w *Writer[C]) enqueue(ctx context.Context, one operation[C]) error {
	w.mutex.RLock()
	defer w.mutex.RUnlock()
	if w.stopped {
		return record.Closed()
	}
	if ctx.Err() == nil {
		select {
		case w.queue <- one:
			return nil
		case <-ctx.Done():
		}
	}
	return record.GaveUp(ctx.Err())
}

func (w *Writer[C]) loop() {
	defer close(w.ended)
	for first := range w.queue {
		group := w.gather(first)
		changes := make([]C, len(group))
		for i, one := range group {
			changes[i] = one.change
		}
		for i, err := range w.commit(changes) {
			w.settle(group[i], err)
		}
		if w.after != nil {
			w.after()
		}
	}
}

// gather takes what is queued, and lets whoever is ready to run hand in more as
// long as more comes of it. It waits for nothing: when nobody is ready, the
// group is complete.
func (w *Writer[C]) gather(first operation[C]) []operation[C] {
	group := []operation[C]{first}
	for before := 0; len(group) > before && len(group) < Most; {
		before = len(group)
		runtime.Gosched()
		group = w.take(group)
	}
	return group
}

// take adds what is queued to the group.
func (w *Writer[C]) take(group []operation[C]) []operation[C] {
	for len(group) < Most {
		select {
		case next, open := <-w.queue:
			if !open {
				return group
			}
			group = append(group, next)
		default:
			return group
		}
	}
	return group
}
