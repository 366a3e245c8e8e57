package api

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
	"github.com/tandem-tune/tandem/study"
)

const (
	// eventPage is how many events are fetched at once.
	eventPage = 500
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

// frame is an event as it goes to every follower.
type frame struct {
	sequence int64
	text     []byte
}

// framed are the events as they are sent, up to so many bytes, but the first at
// any rate.
func framed(events []protocol.Event, most int) ([]frame, error) {
	var frames []frame
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
		frames = append(frames, frame{event.Sequence, text})
	}
	return frames, nil
}

// source is whose events are followed. Who has a link may be told less than others.
type source struct {
	study  string
	shared bool
}

// caller is on whose behalf they are read: whether a follower may see the study
// was found out before.
func (o source) caller() study.Caller {
	if o.shared {
		return study.Caller{Sight: study.Shared, Study: o.study}
	}
	return study.Caller{}
}

// broadcasts are the studies that somebody follows. Each is read once, however
// many do.
type broadcasts struct {
	studies TrialUseCases
	logger  *slog.Logger
	past    chan struct{} // held while the past is read

	mutex sync.Mutex
	open  map[source]*broadcast
}

func newBroadcasts(studies TrialUseCases, logger *slog.Logger) *broadcasts {
	return &broadcasts{studies: studies, logger: logger, past: make(chan struct{}, catchingUp), open: make(map[source]*broadcast)}
}

// broadcast is one study's newest events, for all who follow it.
type broadcast struct {
	all       *broadcasts
	of        source
	followers int // guarded by all.mutex
	end       context.CancelFunc

	mutex  sync.Mutex
	first  int64   // sequence of the first frame
	recent []frame // without a gap
	bytes  int
	more   chan struct{} // closed and replaced when there is more, or no more
	ended  error
}

// join returns the broadcast, begun with the newest events if nobody follows it
// yet, and what ends the following.
func (b *broadcasts) join(of source, last int64) (joined *broadcast, leave func()) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	joined = b.open[of]
	if joined == nil || joined.over() {
		ctx, end := context.WithCancel(study.WithCaller(context.Background(), of.caller()))
		joined = &broadcast{all: b, of: of, end: end, first: max(0, last-recentEvents) + 1, more: make(chan struct{})}
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
func (b *broadcasts) share() int {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return min(recentBytes, allRecentBytes/max(1, len(b.open)))
}

func (b *broadcast) over() bool {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	return b.ended != nil
}

// run reads what comes until the study is deleted or nobody follows it any more.
func (b *broadcast) run(ctx context.Context, after int64) {
	err := b.read(ctx, after)
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.ended = err
	close(b.more)
}

// read returns why there is no more. A defect costs the followers, not the server.
func (b *broadcast) read(ctx context.Context, after int64) (err error) {
	defer func() {
		if cause := recover(); cause != nil {
			b.all.logger.LogAttrs(ctx, slog.LevelError, "panic", slog.String("cause", fmt.Sprint(cause)), slog.String("stack", string(debug.Stack())))
			err = problem.New(problem.Internal, "panic: %v", cause)
		}
	}()
	for {
		events, err := b.all.studies.Events(ctx, b.of.study, after, eventPage)
		if err != nil {
			return err
		}
		if len(events) > 0 {
			after = events[len(events)-1].Sequence
			if err := b.add(events); err != nil {
				return err
			}
		}
		if len(events) < eventPage {
			if err := b.all.studies.WaitEvents(ctx, b.of.study, after); err != nil {
				return err
			}
		}
	}
}

// add appends events and drops the oldest of what is too much.
func (b *broadcast) add(events []protocol.Event) error {
	frames, err := framed(events, math.MaxInt)
	if err != nil {
		return err
	}
	share := b.all.share()
	b.mutex.Lock()
	defer b.mutex.Unlock()
	b.recent = append(b.recent, frames...)
	for _, one := range frames {
		b.bytes += len(one.text)
	}
	dropped := 0
	for ; b.bytes > share || len(b.recent)-dropped > recentEvents; dropped++ {
		b.bytes -= len(b.recent[dropped].text)
	}
	clear(b.recent[:dropped]) // followers have copies
	b.recent = b.recent[dropped:]
	b.first += int64(dropped)
	close(b.more)
	b.more = make(chan struct{})
	return nil
}

// next returns what comes behind the sequence: frames, or a channel that is closed
// when there may be some. Neither means that it is no longer kept here.
func (b *broadcast) next(after int64) (frames []frame, more <-chan struct{}, err error) {
	b.mutex.Lock()
	defer b.mutex.Unlock()
	at := after - b.first + 1
	switch {
	case at < 0 && b.ended == nil:
		return nil, nil, nil
	case at >= 0 && at < int64(len(b.recent)):
		size := 0
		for _, one := range b.recent[at:] {
			if size += len(one.text); size > batchBytes && len(frames) > 0 {
				break
			}
			frames = append(frames, one)
		}
		return frames, nil, nil
	}
	return nil, b.more, b.ended
}

// before reads what came behind the sequence in the store.
func (b *broadcast) before(ctx context.Context, after int64, count int) ([]frame, error) {
	select {
	case b.all.past <- struct{}{}:
		defer func() { <-b.all.past }()
	case <-ctx.Done():
		return nil, ctx.Err()
	}
	events, err := b.all.studies.Events(ctx, b.of.study, after, count)
	if err == nil && len(events) == 0 {
		err = problem.New(problem.Unavailable, "study %s has no events behind %d", b.of.study, after)
	}
	if err != nil {
		return nil, err
	}
	return framed(events, batchBytes)
}
