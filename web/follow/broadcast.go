// Package follow reads the events of each study that somebody follows once, however many
// do, and keeps the newest of them as they are sent.
package follow

import (
	"context"
	"encoding/json"
	"fmt"
	"log/slog"
	"math"
	"runtime/debug"
	"sync"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
)

const (
	// EventPage is how many events are fetched at once.
	EventPage = 500
	// batchBytes bounds what one follower is handed at once.
	batchBytes = 256 << 10
	// recentEvents and recentBytes bound what is kept of one study's newest
	// events, and allRecentBytes what is kept of all studies' together.
	recentEvents   = 1024
	recentBytes    = 1 << 20
	allRecentBytes = 32 << 20
	// catchingUp is how many followers read the past in the store at once.
	catchingUp = 4
)

// Frame is an event as it goes to every follower.
type Frame struct {
	Sequence int64
	Text     []byte
}

// framed are the events as they are sent, up to so many bytes, but the first at
// any rate.
func framed(events []protocol.Event, most int) ([]Frame, error) {
	var frames []Frame
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			return nil, fmt.Errorf("encode event %d: %w", event.Sequence, err)
		}
		// JSON has no line breaks of its own, and kinds are words of ours.
		text := fmt.Appendf(nil, "id: %d\nevent: %s\ndata: %s\n\n", event.Sequence, event.Kind, data)
		if most -= len(text); most < 0 && len(frames) > 0 {
			break
		}
		frames = append(frames, Frame{event.Sequence, text})
	}
	return frames, nil
}

// Source is whose events are followed. Who has a link may be told less than others.
type Source struct {
	Study  string
	Shared bool
}

// caller is on whose behalf they are read: whether a follower may see the study
// was found out before.
func (o Source) caller() access.Caller {
	if o.Shared {
		return access.Caller{Sight: access.Shared, Study: o.Study}
	}
	return access.Caller{}
}

// Studies are the use cases that a broadcast reads by.
type Studies interface {
	Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error)
	WaitEvents(ctx context.Context, ref string, after int64) error
}

// Broadcasts are the studies that somebody follows. Each is read once, however
// many do.
type Broadcasts struct {
	studies Studies
	logger  *slog.Logger
	past    chan struct{} // held while the past is read

	mutex sync.Mutex
	open  map[Source]*Broadcast
}

// New returns what reads events by the use cases, and logs its own defects.
func New(studies Studies, logger *slog.Logger) *Broadcasts {
	return &Broadcasts{studies: studies, logger: logger, past: make(chan struct{}, catchingUp), open: make(map[Source]*Broadcast)}
}

// Broadcast is one study's newest events, for all who follow it.
type Broadcast struct {
	all       *Broadcasts
	of        Source
	followers int // guarded by all.mutex
	end       context.CancelFunc

	mutex  sync.Mutex
	first  int64   // sequence of the first frame
	recent []Frame // without a gap
	bytes  int
	more   chan struct{} // closed and replaced when there is more, or no more
	ended  error
}

// Join returns the broadcast, begun with the newest events if nobody follows it
// yet, and what ends the following.
func (b *Broadcasts) Join(of Source, last int64) (joined *Broadcast, leave func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	joined = b.open[of]
	if joined == nil || joined.over() {
		ctx, end := context.WithCancel(access.WithCaller(context.Background(), of.caller()))
		joined = &Broadcast{all: b, of: of, end: end, first: max(0, last-recentEvents) + 1, more: make(chan struct{})}
		b.open[of] = joined
		go joined.run(ctx, joined.first-1)
	}
	joined.followers++
	return joined, func() {
		b.mutex.Lock()
		defer b.mutex.Unlock()
		if joined.followers--; joined.followers > 0 {
			return
		}
		joined.end()
		if b.open[of] == joined {
			delete(b.open, of)
		}
	}
}

// share is how many bytes one study's newest events may have.
func (b *Broadcasts) share() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return min(recentBytes, allRecentBytes/max(1, len(b.open)))
}

func (b *Broadcast) over() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.ended != nil
}

// run reads what comes until the study is deleted or nobody follows it any more.
func (b *Broadcast) run(ctx context.Context, after int64) {
	err := b.read(ctx, after)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.ended = err
	close(b.more)
}

// read returns why there is no more. A defect costs the followers, not the server.
func (b *Broadcast) read(ctx context.Context, after int64) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			b.all.logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			err = problem.New(problem.Internal, "panic: %v", cause)
		}
	}()
	for {
		events, err := b.all.studies.Events(ctx, b.of.Study, after, EventPage)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			after = events[len(events)-1].Sequence
			if err := b.add(events); err != nil {
				return err
			}
		}
		if len(events) < EventPage {
			if err := b.all.studies.WaitEvents(ctx, b.of.Study, after); err != nil {
				return err
			}
		}
	}
}

// add appends events and drops the oldest of what is too much.
func (b *Broadcast) add(events []protocol.Event) error {
	frames, err := framed(events, math.MaxInt)
	if err != nil {
		return err
	}
	share := b.all.share()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.recent = append(b.recent, frames...)
	for _, one := range frames {
		b.bytes += len(one.Text)
	}
	dropped := 0
	for ; b.bytes > share || len(b.recent)-dropped > recentEvents; dropped++ {
		b.bytes -= len(b.recent[dropped].Text)
	}
	clear(b.recent[:dropped]) // followers have copies
	b.recent = b.recent[dropped:]
	b.first += int64(dropped)
	close(b.more)
	b.more = make(chan struct{})
	return nil
}

// Next returns what comes behind the sequence: frames, or a channel that is closed
// when there may be some. Neither means that it is no longer kept here.
func (b *Broadcast) Next(after int64) (frames []Frame, more <-chan struct{}, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	at := after - b.first + 1
	switch {
	case at < 0 && b.ended == nil:
		return nil, nil, nil
	case at >= 0 && at < int64(len(b.recent)):
		size := 0
		for _, one := range b.recent[at:] {
			if size += len(one.Text); size > batchBytes && len(frames) > 0 {
				break
			}
			frames = append(frames, one)
		}
		return frames, nil, nil
	}
	return nil, b.more, b.ended
}

// Before reads what came behind the sequence in the store.
func (b *Broadcast) Before(ctx context.Context, after int64, count int) ([]Frame, error) {
	select {
	case b.all.past <- struct{}{}:
		defer func() { <-b.all.past }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	events, err := b.all.studies.Events(ctx, b.of.Study, after, count)
	if err == nil && len(events) == 0 {
		err = problem.New(problem.Unavailable, "study %s has no events behind %d", b.of.Study, after)
	}
	if err != nil {
		return nil, err
	}
	return framed(events, batchBytes)
}
