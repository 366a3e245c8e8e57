package agent

import (
	"context"
	"errors"
	"time"

	"github.com/sethvargo/go-retry"

	"github.com/tandem-tune/tandem/internal/problem"
)

// An attempt of a small call is given up after callPatience, the transfer of a
// checkpoint after transferPatience.
const (
	callPatience     = 30 * time.Second
	transferPatience = time.Hour
)

const (
	firstPause   = 200 * time.Millisecond
	longestPause = 10 * time.Second
)

// passing reports whether the same call may succeed later: the server is away,
// overloaded or broken, not the call wrong.
func passing(err error) bool {
	if errors.As(err, new(localFault)) {
		return false
	}
	switch problem.CodeOf(err) {
	case problem.Invalid, problem.NotFound, problem.Conflict, problem.LeaseLost,
		problem.Unauthorized, problem.Forbidden, problem.KeyReused:
		return false
	}
	return true
}

// insist calls until the server has answered, for good or ill, or the context
// ends. stalled is told about each attempt that found no server.
func insist(ctx context.Context, patience time.Duration, stalled func(error), call func(context.Context) error) error {
	return retry.Do(ctx, pauses(firstPause, longestPause), func(ctx context.Context) error {
		attempt, cancel := context.WithTimeout(ctx, patience)
		defer cancel()
		err := call(attempt)
		if err == nil || ctx.Err() != nil || !passing(err) {
			return err
		}
		stalled(err)
		return retry.RetryableError(err)
	})
}

func pauses(first, longest time.Duration) retry.Backoff {
	return retry.WithJitterPercent(20, retry.WithCappedDuration(longest, retry.NewExponential(first)))
}

// pause waits longer each time, until it is reset.
type pause struct {
	first, longest time.Duration
	backoff        retry.Backoff
}

func newPause(first, longest time.Duration) *pause {
	p := &pause{first: first, longest: longest}
	p.reset()
	return p
}

func (p *pause) reset() { p.backoff = pauses(p.first, p.longest) }

func (p *pause) wait(ctx context.Context) {
	next, _ := p.backoff.Next() // these backoffs never stop
	sleep(ctx, next)
}
