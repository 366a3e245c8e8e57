package agent

import (
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

const (
	flushEvery = time.Second
	// lastFlush bounds how long the end of a log may hold up the end of a lease.
	lastFlush = 5 * time.Second
)

// flushRegularly sends the log while the command runs.
func (r *run) flushRegularly(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			r.flush(ctx)
		}
	}
}

// flushLast sends the rest of the log, if the server takes it soon.
func (r *run) flushLast() {
	ctx, cancel := context.WithTimeout(r.ctx, lastFlush)
	defer cancel()
	r.flush(ctx)
}

// flush sends what there is. A log is a convenience: what the server does not
// want is dropped.
func (r *run) flush(ctx context.Context) {
	for {
		text, offset := r.log.chunk()
		if text == "" {
			return
		}
		err := retry.Do(ctx, retry.CallPatience, func(error) {}, func(ctx context.Context) error {
			return r.agent.options.Server.AppendLog(ctx, r.lease.Trial, protocol.LogChunk{LeaseEpoch: r.lease.LeaseEpoch, Offset: offset, Text: text})
		})
		switch {
		case ctx.Err() != nil:
			return
		case problem.Is(err, problem.LeaseLost):
			r.givenAway()
			return
		case err != nil:
			r.logger.Warn("the server refused a piece of the log", "error", err)
		}
		r.log.sent(len(text))
	}
}
