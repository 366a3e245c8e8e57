package api

import (
	"context"

	"github.com/tandem-tune/tandem/trial"
)

type annotateStudyInput struct {
	StudyRef
	Content[trial.Amendment]
}

type annotateTrialInput struct {
	TrialRef
	Content[trial.Amendment]
}

func (s trialAPI) annotateStudy(ctx context.Context, input *annotateStudyInput) (*jsonAnswer[trial.Annotation], error) {
	return answered(s.studies.AnnotateStudy(ctx, input.Study, input.Body))
}

func (s trialAPI) annotateTrial(ctx context.Context, input *annotateTrialInput) (*jsonAnswer[trial.Annotation], error) {
	return answered(s.studies.AnnotateTrial(ctx, input.Study, input.Number, input.Body))
}

// writtenRoutes are for what people write, and show to others.
func (s *server) writtenRoutes() []route {
	return []route{
		{"POST", prefix + "/preview", owners, 200, studyFile, "preview-study", "Check a study file and show its plan, or its faults", handle(s, studyAPI{s}.preview), describePreview},
		{"POST", studyPath + "/annotate", owners, 200, call, "annotate-study", "Change the tags and the note of a study", handle(s, trialAPI{s}.annotateStudy), nil},
		{"POST", trialPath + "/annotate", owners, 200, call, "annotate-trial", "Change the tags and the note of a trial", handle(s, trialAPI{s}.annotateTrial), nil},
		{"POST", studyPath + "/links", owners, 201, secret, "create-link", "Make a link that opens the study to whoever has it, to look at", handle(s, accessAPI{s}.createLink), nil},
		{"GET", studyPath + "/links", owners, 200, call, "list-links", "List the links to a study", handle(s, accessAPI{s}.listLinks), nil},
		{"DELETE", studyPath + "/links/{link}", owners, 204, secret, "delete-link", "Revoke a link with its sessions", handle(s, accessAPI{s}.deleteLink), nil},
	}
}
