package api

import (
	"context"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/web/guard"
)

type trialsInput struct {
	StudyRef
	State  []trial.State `query:"state" doc:"only trials in one of these states, separated by commas"`
	Rung   int           `query:"rung" default:"-1" minimum:"-1" doc:"only trials at this rung; -1: at any"`
	Query  string        `query:"query" maxLength:"2000" doc:"only trials that a query such as state = failed and lr > 0.01 order by loss desc limit 20 chooses, in its order: see docs/queries.md"`
	Sort   string        `query:"sort" maxLength:"200" default:"rank" doc:"a column: rank, number, state, value (value.1: of the second objective), violation, rung, budget, latest, epochs, seconds, joules, params.NAME or a field of queries; rank keeps the order of the query"`
	Order  string        `query:"order" enum:"asc,desc" default:"asc" doc:"NaN sorts after every value in both directions, and trials without a value last"`
	Limit  int           `query:"limit" minimum:"1" maximum:"10000" default:"100"`
	Offset int           `query:"offset" minimum:"0" maximum:"1000000000"`
}

func (s trialAPI) listTrials(ctx context.Context, input *trialsInput) (*jsonAnswer[protocol.TrialPage], error) {
	query := protocol.TrialQuery{
		States: input.State, Query: input.Query, Sort: input.Sort, Descending: input.Order == "desc", Limit: input.Limit, Offset: input.Offset,
	}
	if input.Rung >= 0 {
		query.Rung = &input.Rung
	}
	page, err := s.studies.Trials(ctx, input.Study, query)
	page.Trials = orEmpty(page.Trials)
	for i := range page.Trials {
		page.Trials[i].Results = orEmpty(page.Trials[i].Results)
	}
	return answered(page, err)
}

// TrialRef names a trial in a path.
type TrialRef struct {
	StudyRef
	Number int `path:"number" minimum:"0" maximum:"1000000000" doc:"the trial's number in its study"`
}

func (s trialAPI) getTrial(ctx context.Context, input *TrialRef) (*jsonAnswer[protocol.TrialDetail], error) {
	detail, err := s.studies.TrialDetail(ctx, input.Study, input.Number)
	detail.Trial.Results = orEmpty(detail.Trial.Results)
	detail.Reports, detail.Events = orEmpty(detail.Reports), orEmpty(detail.Events)
	return answered(detail, err)
}

type textAnswer struct {
	ContentType string `header:"Content-Type"`
	Body        []byte
}

func (s trialAPI) getLog(ctx context.Context, input *TrialRef) (*textAnswer, error) {
	text, err := s.studies.Log(ctx, input.Study, input.Number)
	return &textAnswer{ContentType: "text/plain; charset=utf-8", Body: []byte(text)}, err
}

type annotateTrialInput struct {
	TrialRef
	Content[trial.Amendment]
}

func (s trialAPI) annotateTrial(ctx context.Context, input *annotateTrialInput) (*jsonAnswer[trial.Annotation], error) {
	return answered(s.studies.AnnotateTrial(ctx, input.Study, input.Number, input.Body))
}

// writtenRoutes are the routes of texts that people write, and of links.
func (s *server) writtenRoutes() []route {
	return []route{
		{"POST", prefix + "/preview", guard.Owners, 200, guard.StudyFile, "preview-study", "Check a study file and show its plan, or its faults", handle(s, studyAPI{s}.preview), describePreview},
		{"POST", studyPath + "/annotate", guard.Owners, 200, guard.Call, "annotate-study", "Change the tags and the note of a study", handle(s, ofStudy(s.studies.AnnotateStudy)), nil},
		{"POST", trialPath + "/annotate", guard.Owners, 200, guard.Call, "annotate-trial", "Change the tags and the note of a trial", handle(s, trialAPI{s}.annotateTrial), nil},
		{"POST", studyPath + "/links", guard.Owners, 201, guard.Secret, "create-link", "Make a link that opens the study to whoever has it, to look at", handle(s, accessAPI{s}.createLink), nil},
		{"GET", studyPath + "/links", guard.Owners, 200, guard.Call, "list-links", "List the links to a study", handle(s, accessAPI{s}.listLinks), nil},
		{"DELETE", studyPath + "/links/{link}", guard.Owners, 204, guard.Secret, "delete-link", "Revoke a link with its sessions", handle(s, accessAPI{s}.deleteLink), nil},
	}
}
