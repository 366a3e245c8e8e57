package api

import (
	"context"
	"errors"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/follow"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/transfer"
)

// heartbeatEvery is how often a silent stream says that it is alive.
const heartbeatEvery = 15 * time.Second

type eventsInput struct {
	StudyRef
	After int64 `query:"after" minimum:"0" doc:"send the events after this sequence"`
	Last  int64 `header:"Last-Event-ID" minimum:"0" doc:"the same, as browsers send it when they connect again; it wins"`
}

func (s studyAPI) events(ctx context.Context, input *eventsInput) (*huma.StreamResponse, error) {
	after := input.After
	if input.Last > 0 {
		after = input.Last
	}
	owner, last, err := s.studies.Followed(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	token := guard.TokenOf(ctx)
	give, err := s.Limits.TakeStream(token, owner)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(framework huma.Context) {
		defer give()
		joined, leave := s.broadcasts.Join(follow.Source{Study: last.Study, Shared: token.Scope == auth.Link}, last.Sequence)
		defer leave()
		_, w := humachi.Unwrap(framework)
		header := w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("X-Accel-Buffering", "no") // a proxy must not gather events
		w.WriteHeader(http.StatusOK)
		stream := follower{server: s.server, study: joined, after: after, foreign: token.Scope == auth.User && owner != token.Name, ref: last.Study, out: w, connection: http.NewResponseController(w)}
		if err := stream.follow(ctx); ctx.Err() == nil {
			s.Logger.LogAttrs(ctx, slog.LevelDebug, "event stream ended", slog.String("study", last.Study), slog.Any("error", err))
		}
	}}, nil
}

// follower is one client that follows a study. A batch must be taken within the time of
// a stall. A client that does not take it is disconnected, and may connect again to
// continue after the last event that it saw.
type follower struct {
	server     *server
	study      *follow.Broadcast
	after      int64 // the last sequence that was sent
	ref        string
	foreign    bool // a group shows it
	out        io.Writer
	connection *http.ResponseController
}

// follow sends events until the client or the server goes, the study is
// deleted, or the token is no longer valid, and returns which.
func (f *follower) follow(ctx context.Context) error {
	err := f.send(follow.Frame{Sequence: f.after, Text: []byte("retry: 1000\n\n")})
	for page := follow.EventPage; err == nil; {
		frames, more, ended := f.study.Next(f.after)
		switch {
		case ended != nil:
			return ended
		case more != nil:
			if err = f.wait(ctx, more); errors.Is(err, errSilent) {
				frames, err = []follow.Frame{{Sequence: f.after, Text: []byte(": alive\n\n")}}, nil
			}
		case frames == nil:
			// Of large events few go at once: the rest is not read for nothing.
			frames, err = f.study.Before(ctx, f.after, page)
			page = min(2*max(1, len(frames)), follow.EventPage)
		}
		if err != nil || len(frames) == 0 {
			continue
		}
		// What was revoked since the last time is sent nothing more.
		err = f.server.Authenticator.Valid(ctx, guard.TokenOf(ctx).ID)
		if err == nil && f.foreign {
			_, _, err = f.server.studies.Followed(ctx, f.ref)
		}
		if err == nil {
			err = f.send(frames...)
		}
	}
	return err
}

// errSilent says that there were no events for a while.
var errSilent = errors.New("nothing has come")

// wait returns nil when there may be events.
func (f *follower) wait(ctx context.Context, more <-chan struct{}) error {
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
func (f *follower) send(frames ...follow.Frame) error {
	_ = f.connection.SetWriteDeadline(time.Now().Add(transfer.Stall)) // without a connection nothing stalls
	for _, one := range frames {
		if _, err := f.out.Write(one.Text); err != nil {
			return err
		}
		f.after = one.Sequence
	}
	return f.connection.Flush()
}
