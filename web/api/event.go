package api

import (
	"context"
	"log/slog"
	"net/http"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/web/follow"
	"github.com/tandem-tune/tandem/web/guard"
	"github.com/tandem-tune/tandem/web/transfer"
)

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
		stream := follow.Stream{Study: joined, After: after, Out: w, Stall: transfer.Stall, Valid: func() error {
			err := s.Authenticator.Valid(ctx, token.ID)
			if err == nil && token.Scope == auth.User { // it may lose the study, or its role on it
				err = s.studies.Reach(ctx, last.Study)
			}
			return err
		}}
		if err := stream.Follow(ctx); ctx.Err() == nil {
			s.Logger.LogAttrs(ctx, slog.LevelDebug, "event stream ended", slog.String("study", last.Study), slog.Any("error", err))
		}
	}}, nil
}
