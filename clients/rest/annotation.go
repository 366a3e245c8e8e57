package rest

import (
	"context"
	"strconv"

	"github.com/tandem-tune/tandem/trial"
)

// AnnotateStudy changes the tags and the note of a study and returns what they
// are then.
func (c StudyCalls) AnnotateStudy(ctx context.Context, study string, amendment trial.Amendment) (trial.Annotation, error) {
	return exchange[trial.Annotation](ctx, c.caller, path("studies", study, "annotate"), amendment)
}

// AnnotateTrial changes the tags and the note of a trial and returns what they
// are then.
func (c StudyCalls) AnnotateTrial(ctx context.Context, study string, number int, amendment trial.Amendment) (trial.Annotation, error) {
	return exchange[trial.Annotation](ctx, c.caller, path("studies", study, "trials", strconv.Itoa(number), "annotate"), amendment)
}
