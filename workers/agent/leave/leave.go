// Package leave answers: when does a worker leave by itself, why, and what does the
// engine that started it (Slurm, Kubernetes) say of that?
package leave

import (
	"cmp"
	"context"
	"fmt"
	"sync"
	"time"
)

// Rules say when a worker leaves by itself. The zero Rules are never.
type Rules struct {
	// Idle is how long it may have no trial; 0: for ever.
	Idle time.Duration
	// EndAt is when its machine is taken away: it has left before; zero: never.
	EndAt time.Time
	// Launch is the id of the order that a launcher started it for; empty: none did.
	Launch string
	// GPUs is how many GPUs the engine promised; 0 where it promised none.
	GPUs int
	// Host is the machine, where the engine says it better than the host's name, as
	// in a container; Name is what people see the worker as, if nobody said.
	Host, Name string
	// Reason says why the engine ends the worker; nil, or an empty text: nobody knows.
	// It is called when the worker has been told to leave, and may take seconds.
	Reason func() string
	// Notice is how much later than its scripts the worker may be told to leave, as
	// Slurm and systemd tell all processes of a job one after the other; a second when 0.
	Notice time.Duration
}

// Departure is that a worker leaves in order, and why.
type Departure string

// Error is why it leaves.
func (d Departure) Error() string { return string(d) }

// Unfit is that this machine is not what was ordered: nothing can run here.
type Unfit string

// Error is what is wrong, and what would be right.
func (u Unfit) Error() string { return string(u) }

// Useless is that trials fail here for the machine's sake.
type Useless string

// Error is what the server says of it.
func (u Useless) Error() string { return string(u) }

// Check refuses a machine with other GPUs than the engine promised.
func (r Rules) Check(seen int) error {
	if r.GPUs > 0 && seen != r.GPUs {
		return Unfit(fmt.Sprintf("the engine gave this worker %d GPUs and it can use %d: look at nvidia-smi and CUDA_VISIBLE_DEVICES on %s", r.GPUs, seen, r.Host))
	}
	return nil
}

// Watch follows a worker's leases, to tell when it is to leave.
type Watch struct {
	Rules
	// Drain is how long trials have to hand in what they have, at most.
	Drain time.Duration

	mutex  sync.Mutex
	began  time.Time
	since  time.Time // without a lease
	held   int
	leases int
	spent  time.Duration // under leases that ended
	proved bool          // a trial has reported an epoch here

	asked   sync.Once
	leaving string // set by asked
}

// Begin starts the clocks: the worker is registered.
func (w *Watch) Begin() {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.began = time.Now()
	w.since = w.began
}

// Leased notes a lease. The returned function notes its end, and whether an epoch was
// reported under it.
func (w *Watch) Leased() (ended func(reported bool)) {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	w.held++
	at := time.Now()
	return func(reported bool) {
		w.mutex.Lock()
		defer w.mutex.Unlock()
		w.held--
		w.leases++
		w.since = time.Now()
		w.spent += w.since.Sub(at)
		w.proved = w.proved || reported
	}
}

// Left is how long it takes trials yet, if they need so long to be handed back; 0: as long as it
// likes.
func (r Rules) Left(drain time.Duration) time.Duration {
	if r.EndAt.IsZero() {
		return 0
	}
	return max(time.Until(r.EndAt)-drain, time.Millisecond)
}

// Late reports whether too little time is left for another lease: less than a lease
// took here on average, or than a twentieth of the worker's whole time where leases
// take longer than that. A trial of which only a part fits goes on elsewhere.
func (w *Watch) Late() bool {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	return w.late()
}

func (w *Watch) late() bool {
	if w.EndAt.IsZero() {
		return false
	}
	needed := time.Duration(0)
	if w.leases > 0 {
		needed = min(w.spent/time.Duration(w.leases), w.EndAt.Sub(w.began)/20)
	}
	return time.Until(w.EndAt)-w.Drain <= needed
}

// Due is why the worker leaves now; nil if it does not.
func (w *Watch) Due() error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	switch {
	case w.began.IsZero():
		return nil
	case !w.EndAt.IsZero() && time.Until(w.EndAt) <= w.Drain, w.held == 0 && w.late():
		return Departure("the worker's time was over (--end-at " + w.EndAt.Format(time.RFC3339) + ")")
	case w.Idle > 0 && w.held == 0 && time.Since(w.since) >= w.Idle:
		return Departure("the worker had no trial for " + w.Idle.String())
	}
	return nil
}

// Excluded is why the worker leaves whom the server gives no trials of a study any
// more; nil if it does not: it is to stay, or a trial has run here before.
func (w *Watch) Excluded(reason string) error {
	w.mutex.Lock()
	defer w.mutex.Unlock()
	if w.Idle == 0 || w.proved {
		return nil
	}
	return Useless("trials fail on this machine before their first report, so it takes no more of them: " + reason)
}

// Told reports whether the worker is told to leave now, or soon enough for a script to
// have ended for the same reason.
func (w *Watch) Told(leaving context.Context) bool {
	select {
	case <-leaving.Done():
		return true
	case <-time.After(cmp.Or(w.Notice, time.Second)):
		return false
	}
}

// Why says to people why the worker leaves that was told to, by the cause if it was
// its own decision. It asks the engine once.
func (w *Watch) Why(cause error) string {
	if own, is := cause.(Departure); is {
		return own.Error()
	}
	w.asked.Do(func() {
		w.leaving = "the worker was stopped"
		if w.Reason != nil {
			w.leaving = cmp.Or(w.Reason(), w.leaving)
		}
	})
	return w.leaving
}
