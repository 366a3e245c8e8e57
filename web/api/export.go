package api

import (
	"context"
	"fmt"
	"log/slog"
	"net/http"
	"strings"

	"github.com/danielgtaylor/huma/v2"
	"github.com/danielgtaylor/huma/v2/adapters/humachi"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/export"
	"github.com/tandem-tune/tandem/web/openapi"
	"github.com/tandem-tune/tandem/web/transfer"
)

type exportInput struct {
	StudyRef
	Format string `query:"format" enum:"csv,json" default:"csv" doc:"csv: a line a trial; json: the study, its trials and its whole history"`
}

// describeExport describes the formats.
func describeExport(operation *huma.Operation, registry huma.Registry) {
	operation.Responses["200"] = &huma.Response{Description: "The trials as CSV, or everything as JSON", Content: map[string]*huma.MediaType{
		"text/csv": {Schema: &huma.Schema{Type: huma.TypeString}},
		"application/json": {Schema: &huma.Schema{Type: huma.TypeObject, Required: []string{"study", "recommendation", "trials", "events"}, Properties: map[string]*huma.Schema{
			"study":          openapi.SchemaOf[protocol.StudyView](registry),
			"recommendation": openapi.SchemaOf[protocol.Recommendation](registry),
			"trials":         {Type: huma.TypeArray, Items: openapi.SchemaOf[protocol.RankedTrial](registry)},
			"events":         {Type: huma.TypeArray, Items: openapi.SchemaOf[protocol.Event](registry)},
		}}},
	}}
}

func (s studyAPI) export(ctx context.Context, input *exportInput) (*huma.StreamResponse, error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	return &huma.StreamResponse{Body: func(framework huma.Context) {
		_, w := humachi.Unwrap(framework)
		write, kind := export.CSV, "text/csv; charset=utf-8"
		if input.Format == "json" {
			write, kind = export.JSON, "application/json"
		}
		w.Header().Set("Content-Type", kind)
		w.Header().Set("Content-Disposition", fmt.Sprintf("attachment; filename=%q", fileName(view.Name)+"."+input.Format))
		w.WriteHeader(http.StatusOK)
		if err := write(ctx, s.studies, view, transfer.NewWriter(w)); err != nil {
			if ctx.Err() == nil {
				s.Logger.LogAttrs(ctx, slog.LevelError, "export failed", slog.String("study", view.ID), slog.Any("error", err))
			}
			panic(http.ErrAbortHandler) // a part must not look like the whole
		}
	}}, nil
}

// fileName is the name without anything a header or a disk could misread.
func fileName(name string) string {
	return strings.Map(func(r rune) rune {
		if r < 128 && (r == '-' || r == '_' || r == '.' || r >= '0' && r <= '9' || r >= 'A' && r <= 'Z' || r >= 'a' && r <= 'z') {
			return r
		}
		return '_'
	}, name)
}
