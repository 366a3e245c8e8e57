package api

import (
	"context"
	"errors"
	"log/slog"
	"mime"
	"net/http"

	"github.com/danielgtaylor/huma/v2"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile"
	"github.com/tandem-tune/tandem/web/answer"
	"github.com/tandem-tune/tandem/web/openapi"
)

type nothing struct{}

// StudyRef names a study in a path.
type StudyRef struct {
	Study string `path:"study" maxLength:"200" doc:"the study's id, or its name: alone for one of your own, as OWNER:NAME for a user's"`
}

type studyList struct {
	Studies []protocol.StudyView `json:"studies"`
}

type createInput struct {
	ContentType string `header:"Content-Type" hidden:"true"`
	RawBody     []byte `contentType:"application/yaml"`
}

func (s studyAPI) createStudy(ctx context.Context, input *createInput) (*jsonAnswer[protocol.StudyView], error) {
	format, err := formatOf(input.ContentType)
	if err != nil {
		return nil, err
	}
	format, file, prior, err := creation(format, input.RawBody)
	if err != nil {
		return nil, err
	}
	def, err := studyfile.Parse(file, format)
	if studyfile.Unreadable(err) {
		var told *problem.Error
		errors.As(err, &told)
		return nil, answer.Malformed(told)
	}
	if err != nil {
		return nil, err
	}
	if err := s.checkNames(ctx, def); err != nil {
		return nil, err
	}
	view, err := s.studies.CreateWarm(ctx, def, prior)
	if err != nil {
		return nil, err
	}
	s.ReportAudit(ctx, s.AuditMade(ctx, "study "+view.ID, view.Owner+":"+view.Name))
	return &jsonAnswer[protocol.StudyView]{Body: view}, nil
}

// checkNames names what the study names and the server does not have.
func (s studyAPI) checkNames(ctx context.Context, def definition.Definition) error {
	if err := s.hooks.Check(ctx, def); err != nil {
		return err
	}
	if err := s.studies.CheckDatasets(ctx, def); err != nil {
		return err
	}
	return s.studies.CheckBoards(def)
}

// plan previews the study, with its costs as far as they can be known.
func (s studyAPI) plan(ctx context.Context, def definition.Definition, input *previewInput) (budget.Plan, error) {
	var pace budget.Pace
	if input.Like != "" {
		view, err := s.studies.Study(ctx, input.Like)
		if err != nil {
			return budget.Plan{}, err
		}
		if pace, err = study.PaceOf(view); err != nil {
			return budget.Plan{}, err
		}
	}
	plan := def.Plan()
	plan.Costs = plan.Cost(pace, input.Workers)
	return plan, nil
}

// formatOf is the format of a study file with the content type.
func formatOf(contentType string) (studyfile.Format, error) {
	kind, _, err := mime.ParseMediaType(contentType)
	if err == nil {
		switch kind {
		case "application/json":
			return studyfile.JSON, nil
		case "application/yaml", "application/x-yaml", "text/yaml", "text/x-yaml":
			return studyfile.YAML, nil
		}
	}
	return "", answer.Fault(http.StatusUnsupportedMediaType, problem.Invalid, "send the study file with Content-Type: application/yaml or application/json")
}

func describeCreate(operation *huma.Operation, registry huma.Registry) {
	operation.Description = "The body is a study file, in YAML or JSON: see docs/study-file.md; preview-study checks it and creates nothing. " +
		"To begin with results that were measured elsewhere, send {study, prior} (or {study_file, prior}, with the YAML as text) instead."
	mostPrior := protocol.MaxPrior
	// The file is checked by its own parser, which names every fault at once.
	operation.SkipValidateBody = true
	operation.RequestBody = &huma.RequestBody{Required: true, Content: map[string]*huma.MediaType{
		"application/json": {Schema: &huma.Schema{OneOf: []*huma.Schema{
			{Type: huma.TypeObject, Description: "a study file in JSON"},
			{Type: huma.TypeObject, Description: "a study file with results that were measured elsewhere", Properties: map[string]*huma.Schema{
				"study":      {Type: huma.TypeObject, Description: "a study file in JSON"},
				"study_file": {Type: huma.TypeString, Description: "or a study file in YAML"},
				"prior":      {Type: huma.TypeArray, MaxItems: &mostPrior, Items: openapi.SchemaOf[protocol.Observation](registry)},
			}, Required: []string{"prior"}},
		}}},
	}}
}

type studyInput[I any] struct {
	StudyRef
	Content[I]
}

// ofStudy makes a handler of a use case that takes a body about a study.
func ofStudy[I, T any](do func(context.Context, string, I) (T, error)) func(context.Context, *studyInput[I]) (*jsonAnswer[T], error) {
	return func(ctx context.Context, input *studyInput[I]) (*jsonAnswer[T], error) {
		return answered(do(ctx, input.Study, input.Body))
	}
}

func (s studyAPI) study(ctx context.Context, input *StudyRef) (*jsonAnswer[protocol.StudyView], error) {
	view, err := s.studies.Study(ctx, input.Study)
	view.Waits = s.server.launches.Explain(access.CallerOf(ctx), view, s.Now())
	return answered(view, err)
}

func (s studyAPI) deleteStudy(ctx context.Context, input *StudyRef) (*nothing, error) {
	view, err := s.studies.Study(ctx, input.Study)
	if err != nil {
		return nil, err
	}
	if err := s.studies.Delete(ctx, view.ID); err != nil {
		return nil, err
	}
	if err := accessAPI(s).links().Drop(ctx, view.ID); err != nil { // they open nothing any more
		s.Logger.LogAttrs(ctx, slog.LevelWarn, "links to a deleted study are left", slog.String("study", view.ID), slog.Any("error", err))
	}
	return nil, nil
}

type measurementsInput struct {
	StudyRef
	Points int `query:"points" minimum:"1" maximum:"100000" default:"2000" doc:"how many results to answer at most; of more, the best and the middle one of each stretch of time are chosen, by rung"`
}

func (s studyAPI) measurements(ctx context.Context, input *measurementsInput) (*jsonAnswer[protocol.Measurements], error) {
	return answered(s.studies.Measurements(ctx, input.Study, input.Points))
}

// orEmpty makes an absent list an empty one: [] in JSON, not null.
func orEmpty[T any](list []T) []T {
	if list == nil {
		return []T{}
	}
	return list
}
