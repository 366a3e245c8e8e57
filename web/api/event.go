package api

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net/http"
	"time"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/protocol"
)

const (
	// heartbeatEvery is how often a silent stream says that it is alive.
	heartbeatEvery = 15 * time.Second
	// eventPage is how many events are fetched at once.
	eventPage = 500
)

type eventsInput struct {
	StudyRef
	After int64 `query:"after" minimum:"0" doc:"send the events behind this sequence"`
	Last  int64 `header:"Last-Event-ID" minimum:"0" doc:"the same, as browsers send it when they connect again; it wins"`
}

func (s *server) events(ctx context.Context, input *eventsInput) (*huma.StreamResponse, error) {
	after := input.After
	if input.Last > 0 {
		after = input.Last
	}
	first, err := s.studies.Events(ctx, input.Study, after, eventPage)
	if err != nil {
		return nil, err
	}
	give, err := s.takeStream(tokenOf(ctx))
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(framework huma.Context) {
		defer give()
		_, w := humachi.Unwrap(framework)
		header := w.Header()
		header.Set("Content-Type", "text/event-stream")
		header.Set("X-Accel-Buffering", "no") // a proxy must not gather events
		w.WriteHeader(http.StatusOK)
		stream := follower{server: s, study: input.Study, after: after, out: patientWriter(w), connection: http.NewResponseController(w)}
		if err := stream.follow(ctx, first); ctx.Err() == nil {
			s.logger.LogAttrs(ctx, slog.LevelDebug, "event stream ended", slog.String("study", input.Study), slog.Any("error", err))
		}
	}}, nil
}

// follower is one client that follows a study.
type follower struct {
	server     *server
	study      string
	after      int64 // the last sequence that was sent
	out        io.Writer
	connection *http.ResponseController
}

// follow sends events until the client or the server goes, the study is
// deleted, or the token is no longer valid, and returns which.
func (f *follower) follow(ctx context.Context, events []protocol.Event) error {
	checked := time.Now()
	err := f.send("retry: 1000\n\n")
	for err == nil {
		if err = f.sendAll(events); err != nil {
			return err
		}
		if time.Since(checked) >= heartbeatEvery {
			checked = time.Now()
			if err = f.server.authenticator.Valid(ctx, tokenOf(ctx).ID); err != nil {
				return err
			}
		}
		if len(events) < eventPage {
			if err = f.wait(ctx); err != nil {
				return err
			}
		}
		events, err = f.server.studies.Events(ctx, f.study, f.after, eventPage)
	}
	return err
}

// wait returns when there may be events, or after a sign of life.
func (f *follower) wait(ctx context.Context) error {
	waiting, cancel := context.WithTimeout(ctx, heartbeatEvery)
	defer cancel()
	err := f.server.studies.WaitEvents(waiting, f.study, f.after)
	if err != nil && ctx.Err() == nil && errors.Is(waiting.Err(), context.DeadlineExceeded) {
		return f.send(": alive\n\n")
	}
	return err
}

func (f *follower) sendAll(events []protocol.Event) error {
	for _, event := range events {
		data, err := json.Marshal(event)
		if err != nil {
			return fmt.Errorf("encode event %d: %w", event.Sequence, err)
		}
		// JSON has no line breaks of its own, and kinds are words of ours.
		if _, err := fmt.Fprintf(f.out, "id: %d\nevent: %s\ndata: %s\n\n", event.Sequence, event.Kind, data); err != nil {
			return err
		}
		f.after = event.Sequence
	}
	return f.connection.Flush()
}

func (f *follower) send(text string) error {
	if _, err := io.WriteString(f.out, text); err != nil {
		return err
	}
	return f.connection.Flush()
}
