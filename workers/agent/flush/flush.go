// Package flush sends what a run leaves behind beside its reports: its log, and what was
// sampled of it.
package flush

import (
	"context"
	"log/slog"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/retry"
)

const (
	logEvery = time.Second
	// Samples are sent after the first time, and then after twice the time before, up to
	// the last: so many seconds of them are lost with a worker at the most.
	firstSamples, lastSamples = 2 * time.Second, time.Minute
	// lastFlush bounds how long what is left may hold up the end of a lease.
	lastFlush = 5 * time.Second
)

// Server is what is asked to keep it.
type Server interface {
	AppendLog(ctx context.Context, id trial.ID, chunk protocol.LogChunk) error
	// KeepSamples keeps what was sampled under the lease, in place of what it kept of it.
	KeepSamples(ctx context.Context, id trial.ID, batch protocol.SampleBatch) error
}

// Sender sends a run's log and samples to the server.
type Sender struct {
	Log     *process.Log
	Samples *Recording
	Server  Server
	Lease   protocol.Lease
	// GivenAway is called when the server says that the lease is lost.
	GivenAway func()
	Logger    *slog.Logger
	// Tail, of a confidential lease, is all that is sent, at its end.
	Tail string
}

// Regularly sends both while the command runs.
func (s Sender) Regularly(ctx context.Context) {
	if s.Lease.Confidential != nil {
		return
	}
	var both sync.WaitGroup
	both.Go(func() { every(ctx, logEvery, logEvery, s.sendLog) })
	both.Go(func() { every(ctx, firstSamples, lastSamples, s.sendSamples) })
	both.Wait()
}

func every(ctx context.Context, interval, longest time.Duration, do func(context.Context)) {
	for ; ; interval = min(2*interval, longest) {
		select {
		case <-ctx.Done():
			return
		case <-time.After(interval):
			do(ctx)
		}
	}
}

// Last sends what is left, if the server takes it soon.
func (s Sender) Last(ctx context.Context) {
	ctx, cancel := context.WithTimeout(ctx, lastFlush)
	defer cancel()
	if s.Lease.Confidential == nil {
		s.sendLog(ctx)
		s.sendSamples(ctx)
	} else if s.Tail != "" {
		s.send(ctx, "the end of the output", func(ctx context.Context) error {
			return s.Server.AppendLog(ctx, s.Lease.Trial, protocol.LogChunk{LeaseEpoch: s.Lease.LeaseEpoch, Text: s.Tail})
		})
	}
}

// sendLog sends what there is. A log is a convenience: what the server does not
// want is dropped.
func (s Sender) sendLog(ctx context.Context) {
	for {
		text, offset := s.Log.Chunk()
		if text == "" {
			return
		}
		taken := s.send(ctx, "a piece of the log", func(ctx context.Context) error {
			return s.Server.AppendLog(ctx, s.Lease.Trial, protocol.LogChunk{LeaseEpoch: s.Lease.LeaseEpoch, Offset: offset, Text: text})
		})
		if !taken {
			return
		}
		s.Log.Sent(len(text))
	}
}

// sendSamples sends all samples, if there are new ones.
func (s Sender) sendSamples(ctx context.Context) {
	data, number, err := s.Samples.unsent()
	if err != nil {
		s.Logger.Warn("the samples cannot be sent", "error", err)
	}
	if data == nil {
		return
	}
	if s.send(ctx, "samples", func(ctx context.Context) error {
		return s.Server.KeepSamples(ctx, s.Lease.Trial, protocol.SampleBatch{LeaseEpoch: s.Lease.LeaseEpoch, Data: data})
	}) {
		s.Samples.taken(number)
	}
}

// send makes the call and reports whether that is done with.
func (s Sender) send(ctx context.Context, what string, call func(context.Context) error) bool {
	err := retry.Do(ctx, retry.CallPatience, func(error) {}, call)
	switch {
	case ctx.Err() != nil:
		return false
	case problem.Is(err, problem.LeaseLost):
		s.GivenAway()
		return false
	case err != nil:
		s.Logger.Warn("the server refused "+what, "error", err)
	}
	return true
}
