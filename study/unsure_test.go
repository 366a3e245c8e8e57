package study_test

import (
	"context"
	"sync/atomic"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/study"
)

// unsure is a store that now and then refuses a change, or makes it and says
// that it did not: the caller cannot know which.
type unsure struct {
	study.Store
	random *lockedRandom
	// calm is set while the store does what it says.
	calm    atomic.Bool
	refused atomic.Int64
	made    atomic.Int64
}

func (u *unsure) Apply(ctx context.Context, change study.Change) error {
	if u.calm.Load() || !u.random.chance(0.02) {
		return u.Store.Apply(ctx, change)
	}
	if u.random.chance(0.5) {
		u.refused.Add(1)
		return problem.New(problem.Unavailable, "refused")
	}
	if err := u.Store.Apply(ctx, change); err != nil {
		return err
	}
	u.made.Add(1)
	return problem.New(problem.Unavailable, "made, and not said so")
}
