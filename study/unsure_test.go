package study_test

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/journal"
)

// unsure is a store that takes its time, and now and then refuses a change, or
// makes it and says that it did not: the caller cannot know which.
type unsure struct {
	study.Store
	random *lockedRandom
	// calm is set while the store is quick and does what it says.
	calm atomic.Bool

	mutex sync.Mutex
	line  []submitted // in the order in which they were handed in

	refused, made atomic.Int64
	// queued is how many were handed in behind another one, carried how many
	// were refused with the one before.
	queued, carried atomic.Int64
}

type submitted struct {
	ctx     context.Context
	change  journal.Change
	outcome *journal.Outcome
}

func (u *unsure) Apply(ctx context.Context, change journal.Change) error {
	return u.Submit(ctx, change).Wait()
}

func (u *unsure) Submit(ctx context.Context, change journal.Change) *journal.Outcome {
	one := submitted{ctx, change, journal.NewOutcome()}
	u.mutex.Lock()
	defer u.mutex.Unlock()
	u.line = append(u.line, one)
	if len(u.line) > 1 {
		u.queued.Add(1)
	} else {
		go u.serve()
	}
	return one.outcome
}

// serve makes the changes until none is left.
func (u *unsure) serve() {
	for left := true; left; {
		u.mutex.Lock()
		one := u.line[0]
		u.mutex.Unlock()
		err := u.make(one)
		u.mutex.Lock()
		u.line = u.line[1:]
		left = len(u.line) > 0
		u.mutex.Unlock()
		one.outcome.Settle(err)
	}
}

func (u *unsure) make(one submitted) error {
	if u.calm.Load() {
		return u.Store.Apply(one.ctx, one.change)
	}
	if u.random.chance(0.3) {
		time.Sleep(u.random.seconds(3))
	}
	if !u.random.chance(0.02) {
		err := u.Store.Apply(one.ctx, one.change)
		if one.change.Behind != nil && problem.Is(err, problem.Unavailable) {
			u.carried.Add(1)
		}
		return err
	}
	if u.random.chance(0.5) {
		u.refused.Add(1)
		return problem.New(problem.Unavailable, "refused")
	}
	if err := u.Store.Apply(one.ctx, one.change); err != nil {
		return err
	}
	u.made.Add(1)
	return problem.New(problem.Unavailable, "made, and not said so")
}
