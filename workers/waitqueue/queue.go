// Package waitqueue holds the workers that wait for trials in long polls, and who of
// them is skipped for whom. It has no lock.
package waitqueue

import (
	"slices"
	"time"

	"github.com/tandem-tune/tandem/study/access"
)

const (
	// Patience is how long a worker is skipped at most for a better one that waits
	// too: then it gets what it would have got at once.
	Patience = 3 * time.Second
	// forgetSkipped is after how long without another one it is forgotten that a worker
	// was skipped: while it is not, it asks again with every tick.
	forgetSkipped = 3 * time.Second
	// wakeAgainAfter is how soon a worker is woken again to look for the same trial.
	wakeAgainAfter = time.Second
)

// Queue is who waits for trials in long polls, and who of them is skipped for whom.
type Queue struct {
	waiting map[string]*Waiter // by worker
	sorted  []string           // their ids
	// skipped says since when a worker is skipped for a better one, by worker and study.
	skipped map[string]map[string]skip
	// first is who was first to be skipped for a trial of a study.
	first map[string]FirstSkipped
	// types counts the waiting workers by their type of machine.
	types map[string]int
}

// Waiter is a worker that waits.
type Waiter struct {
	Caller  access.Caller
	Machine string // its type
	// Calls is how many of its calls wait.
	Calls int
	// wake is closed, and made anew, to have it look again.
	wake chan struct{}
	// woken is when that was last done for the sake of a study.
	woken map[string]time.Time
}

type skip struct {
	since, last time.Time
	better      string // for whom
}

// FirstSkipped is a worker's type of machine, and when it was skipped.
type FirstSkipped struct {
	Machine string
	At      time.Time
}

// New returns an empty queue.
func New() *Queue {
	return &Queue{waiting: map[string]*Waiter{}, skipped: map[string]map[string]skip{}, types: map[string]int{}, first: map[string]FirstSkipped{}}
}

// Enqueue notes that a call of the worker waits.
func (q *Queue) Enqueue(worker, machine string, caller access.Caller) {
	w, waits := q.waiting[worker]
	if !waits {
		w = &Waiter{wake: make(chan struct{}), woken: map[string]time.Time{}, Machine: machine}
		q.waiting[worker] = w
		at, _ := slices.BinarySearch(q.sorted, worker)
		q.sorted = slices.Insert(q.sorted, at, worker)
		q.types[machine]++
	}
	w.Caller = caller
	w.Calls++
}

// Dequeue notes that one of them waits no more. With the last one those are woken who
// were skipped for the worker.
func (q *Queue) Dequeue(worker string) {
	w, waits := q.waiting[worker]
	if !waits {
		return
	}
	if w.Calls--; w.Calls > 0 {
		return
	}
	if q.types[w.Machine]--; q.types[w.Machine] == 0 {
		delete(q.types, w.Machine)
	}
	delete(q.waiting, worker)
	if at, there := slices.BinarySearch(q.sorted, worker); there {
		q.sorted = slices.Delete(q.sorted, at, at+1)
	}
	for other, studies := range q.skipped {
		for _, one := range studies {
			if one.better == worker {
				q.wake(other)
				break
			}
		}
	}
}

// wake has the worker look again.
func (q *Queue) wake(worker string) {
	if w, waits := q.waiting[worker]; waits {
		close(w.wake)
		w.wake = make(chan struct{})
	}
}

// Skip has a worker wait for a better one that waits too, which is woken. It is false
// when the worker has waited for long enough.
func (q *Queue) Skip(now time.Time, worker, study, better string) bool {
	w, waits := q.waiting[better]
	if !waits {
		return false
	}
	one, before := q.skipped[worker][study]
	if !before || now.Sub(one.last) > forgetSkipped {
		one.since = now
	}
	one.better = better
	if one.last = now; now.Sub(one.since) >= Patience {
		delete(q.skipped[worker], study)
		return false
	}
	if q.skipped[worker] == nil {
		q.skipped[worker] = map[string]skip{}
	}
	q.skipped[worker][study] = one
	if last, woken := w.woken[study]; !woken || now.Sub(last) >= wakeAgainAfter {
		w.woken[study] = now
		q.wake(better)
	}
	return true
}

// Waiter is the worker, if it waits.
func (q *Queue) Waiter(worker string) (*Waiter, bool) {
	w, waits := q.waiting[worker]
	return w, waits
}

// Wake is closed when the worker should look again.
func (w *Waiter) Wake() <-chan struct{} { return w.wake }

// Sorted are the ids of the workers that wait. They are not to be changed.
func (q *Queue) Sorted() []string { return q.sorted }

// Several reports whether the workers that wait, and one with a machine of the type,
// have machines of several types.
func (q *Queue) Several(machine string) bool {
	_, same := q.types[machine]
	return len(q.types) > 1 || len(q.types) == 1 && !same
}

// NoteFirst notes that a worker with a machine of the type was skipped for a trial of
// the study, unless another one was, not long ago.
func (q *Queue) NoteFirst(study, machine string, now time.Time) {
	if first, known := q.first[study]; !known || now.Sub(first.At) > Patience {
		q.first[study] = FirstSkipped{machine, now}
	}
}

// TakeFirst takes away who was first skipped for a trial of the study; nil for nobody.
func (q *Queue) TakeFirst(study string) *FirstSkipped {
	first, known := q.first[study]
	if !known {
		return nil
	}
	delete(q.first, study)
	return &first
}

// PutFirst puts it back, unless there is another one by now.
func (q *Queue) PutFirst(study string, first FirstSkipped) {
	if _, another := q.first[study]; !another {
		q.first[study] = first
	}
}

// Served forgets that the worker was skipped: it has a trial.
func (q *Queue) Served(worker string) { delete(q.skipped, worker) }

// WakeSkipped has those look again who were skipped, and forgets what is long ago.
func (q *Queue) WakeSkipped(now time.Time) {
	for worker, studies := range q.skipped {
		for study, one := range studies {
			if now.Sub(one.last) > forgetSkipped {
				delete(studies, study)
			}
		}
		if len(studies) == 0 {
			delete(q.skipped, worker)
			continue
		}
		q.wake(worker)
	}
	for study, first := range q.first {
		if now.Sub(first.At) > Patience {
			delete(q.first, study)
		}
	}
}
