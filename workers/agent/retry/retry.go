// Package retry repeats calls that a server did not answer.
package retry

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

// CallPatience is how long an attempt of a small call may take.
const CallPatience = 30 * time.Second

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
)

// Local is a fault of this worker: asking the server again does not help.
type Local struct{ Err error }

func (f Local) Error() string { return f.Err.Error() }

func (f Local) Unwrap() error { return f.Err }

// Transient reports whether the same call may succeed later: the server is away,
// overloaded or broken, not the call wrong.
func Transient(err error) bool {
	if errors.As(err, new(Local)) {
		return false
	}
	switch problem.CodeOf(err) {
	case problem.Invalid, problem.NotFound, problem.Conflict, problem.LeaseLost,
		problem.Unauthorized, problem.Forbidden, problem.KeyReused:
		return false
	}
	return true
}

// Do calls until the server has answered, for good or ill, or the context
// ends. It calls stalled after each attempt that found no server.
func Do(ctx context.Context, patience time.Duration, stalled func(error), call func(context.Context) error) error {
	return retry.Do(ctx, pauses(firstPause, longestPause), func(ctx context.Context) error {
		attempt, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := call(attempt)
		if err == nil || ctx.Err() != nil || !Transient(err) {
			return err
		}
		stalled(err)
		return retry.RetryableError(err)
	})
}

func pauses(first, longest time.Duration) retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(longest, retry.NewExponential(first)))
}

// Pause waits longer each time, until it is reset.
type Pause struct {
	first, longest time.Duration
	backoff        retry.Backoff
}

// NewPause waits first at first, then twice as long each time, up to longest.
func NewPause(first, longest time.Duration) *Pause {
	return &Pause{first, longest, pauses(first, longest)}
}

// Reset begins anew with the first pause.
func (p *Pause) Reset() { p.backoff = pauses(p.first, p.longest) }

// Wait returns when the pause is over or the context ends.
func (p *Pause) Wait(ctx context.Context) {
	next, _ := p.backoff.Next() // these backoffs never stop
	clock.Sleep(ctx, next)
}
