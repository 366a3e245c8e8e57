package follow

import (
	"context"
	"errors"
	"net/http"
	"time"
)

// heartbeatEvery is how often a silent stream says that it is alive.
const heartbeatEvery = 15 * time.Second

// Stream is one client that follows a study. A batch must be taken within the time of
// a stall. A client that does not take it is disconnected, and may connect again to
// continue after the last event that it saw.
type Stream struct {
	Study *Broadcast
	After int64 // the last sequence that was sent
	Out   http.ResponseWriter
	Stall time.Duration
	// Valid fails when the client may not see more.
	Valid func() error
}

// Follow sends events until the client or the server goes, the study is
// deleted, or the token is no longer valid, and returns which.
func (f *Stream) Follow(ctx context.Context) error {
	err := f.send(Frame{Sequence: f.After, Text: []byte("retry: 1000\n\n")})
	for page := EventPage; err == nil; {
		frames, more, ended := f.Study.Next(f.After)
		switch {
		case ended != nil:
			return ended
		case more != nil:
			if err = f.wait(ctx, more); errors.Is(err, errSilent) {
				frames, err = []Frame{{Sequence: f.After, Text: []byte(": alive\n\n")}}, nil
			}
		case frames == nil:
			// Of large events few go at once: the rest is not read for nothing.
			frames, err = f.Study.Before(ctx, f.After, page)
			page = min(2*max(1, len(frames)), EventPage)
		}
		if err != nil || len(frames) == 0 {
			continue
		}
		// What was revoked since the last time is sent nothing more.
		if err = f.Valid(); err == nil {
			err = f.send(frames...)
		}
	}
	return err
}

// errSilent says that there were no events for a while.
var errSilent = errors.New("nothing has come")

// wait returns nil when there may be events.
func (f *Stream) wait(ctx context.Context, more <-chan struct{}) error {
	silence := time.NewTimer(heartbeatEvery)
	defer silence.Stop()
	select {
	case <-more:
		return nil
	case <-silence.C:
		return errSilent
	case <-ctx.Done():
		return ctx.Err()
	}
}

// send writes all of it within the time of a stall.
func (f *Stream) send(frames ...Frame) error {
	connection := http.NewResponseController(f.Out)
	_ = connection.SetWriteDeadline(time.Now().Add(f.Stall)) // without a connection nothing stalls
	for _, one := range frames {
		if _, err := f.Out.Write(one.Text); err != nil {
			return err
		}
		f.After = one.Sequence
	}
	return connection.Flush()
}
