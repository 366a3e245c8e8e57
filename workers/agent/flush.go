package agent

import (
	"context"
	"log/slog"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

const (
	flushEvery = time.Second
	// lastFlush bounds how long the end of a log may hold up the end of a lease.
	lastFlush = 5 * time.Second
)

// logSender sends a run's log to the server.
type logSender struct {
	log    *process.Log
	server Server
	lease  protocol.Lease
	// givenAway is called when the server says that the lease is lost.
	givenAway func()
	logger    *slog.Logger
}

// regularly sends the log while the command runs.
func (s logSender) regularly(ctx context.Context) {
	ticker := time.NewTicker(flushEvery)
	defer ticker.Stop()
	for {
		select {
		case <-ctx.Done():
			return
		case <-ticker.C:
			s.send(ctx)
		}
	}
}

// last sends the rest of the log, if the server takes it soon.
func (s logSender) last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastFlush)
	defer cancel()
	s.send(ctx)
}

// send sends what there is. A log is a convenience: what the server does not
// want is dropped.
func (s logSender) send(ctx context.Context) {
	for {
		text, offset := s.log.Chunk()
		if text == "" {
			return
		}
		err := retry.Do(ctx, retry.CallPatience, func(error) {}, func(ctx context.Context) error {
			return s.server.AppendLog(ctx, s.lease.Trial, protocol.LogChunk{LeaseEpoch: s.lease.LeaseEpoch, Offset: offset, Text: text})
		})
		switch {
		case ctx.Err() != nil:
			return
		case problem.Is(err, problem.LeaseLost):
			s.givenAway()
			return
		case err != nil:
			s.logger.Warn("the server refused a piece of the log", "error", err)
		}
		s.log.Sent(len(text))
	}
}
