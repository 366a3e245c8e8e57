package study

import (
	"context"

	"github.com/tandem-tune/tandem/trial"
)

// AnnotateStudy changes the tags and the note of a study, whatever its status,
// and returns what they are then. The error is invalid and names every fault of
// the amendment.
func (s *Service) AnnotateStudy(ctx context.Context, ref string, amendment trial.Amendment) (trial.Annotation, error) {
	return s.annotate(ctx, ref, func(tx *transaction) (trial.Annotation, error) {
		current := tx.session.study
		amended, err := current.Annotation.Amended(amendment)
		if err != nil {
			return amended, err
		}
		current.Annotation = amended
		tx.study = &current
		tx.change.Update = &current
		tx.log(Event{Kind: Annotated}, amended)
		return amended, nil
	})
}

// AnnotateTrial changes the tags and the note of a trial, whatever its state,
// and returns what they are then. The error is not_found if there is no such
// trial, or invalid and names every fault of the amendment.
func (s *Service) AnnotateTrial(ctx context.Context, ref string, number int, amendment trial.Amendment) (trial.Annotation, error) {
	return s.annotate(ctx, ref, func(tx *transaction) (trial.Annotation, error) {
		t, err := tx.session.trial(number)
		if err != nil {
			return trial.Annotation{}, err
		}
		if t.Annotation, err = t.Annotation.Amended(amendment); err != nil {
			return t.Annotation, err
		}
		tx.stage(t)
		tx.log(Event{Kind: Annotated, Trial: t.ID}, t.Annotation)
		return t.Annotation, nil
	})
}

// annotate runs one change of an annotation. What the study decides does not
// depend on it.
func (s *Service) annotate(ctx context.Context, ref string, amend func(*transaction) (trial.Annotation, error)) (trial.Annotation, error) {
	r, err := s.locked(ctx, ref)
	if err != nil {
		return trial.Annotation{}, err
	}
	defer r.leave()
	tx := s.begin(r)
	amended, err := amend(tx)
	if err != nil {
		return trial.Annotation{}, refusal(r, err)
	}
	if err := commit(ctx, s, tx, &amended); err != nil {
		return trial.Annotation{}, err
	}
	return amended, nil
}
