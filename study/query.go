package study

import (
	"cmp"
	"context"
	"slices"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Studies returns every study, the newest first.
func (s *Service) Studies(ctx context.Context) ([]protocol.StudyView, error) {
	stored, err := s.store.Studies(ctx)
	if err != nil {
		return nil, err
	}
	views := make([]protocol.StudyView, 0, len(stored))
	for _, one := range stored {
		view, err := s.glance(ctx, one.ID)
		if problem.Is(err, problem.NotFound) {
			continue // deleted since
		}
		if err != nil {
			return nil, err
		}
		views = append(views, view)
	}
	return views, nil
}

// Study returns one study by id or name.
func (s *Service) Study(ctx context.Context, ref string) (protocol.StudyView, error) {
	r, err := s.locked(ctx, ref)
	if err != nil {
		return protocol.StudyView{}, err
	}
	defer r.mutex.Unlock()
	return r.view(s.options.Now()), nil
}

// maxTrialPage bounds one page of trials.
const maxTrialPage = 10000

// Trials returns one page of the study's trials.
func (s *Service) Trials(ctx context.Context, ref string, query protocol.TrialQuery) (protocol.TrialPage, error) {
	r, err := s.locked(ctx, ref)
	if err != nil {
		return protocol.TrialPage{}, err
	}
	direction := r.study.Definition.Objectives[0].Direction
	trials, sequence := slices.Clone(r.trials), r.sequence
	r.mutex.Unlock()

	ranked := rank(trials, direction)
	ranked = slices.DeleteFunc(ranked, func(t protocol.RankedTrial) bool {
		return len(query.States) > 0 && !slices.Contains(query.States, t.State) || query.Rung != nil && t.Rung != *query.Rung
	})
	switch query.Sort {
	case "", "rank":
	case "value":
		slices.SortStableFunc(ranked, func(a, b protocol.RankedTrial) int { return compareValue(&a.Trial, &b.Trial, direction) })
	case "number", "seconds", "epochs", "joules":
		slices.SortStableFunc(ranked, func(a, b protocol.RankedTrial) int { return compareBy(query.Sort, a.Trial, b.Trial) })
	default:
		return protocol.TrialPage{}, problem.WithFields("the query is not valid", []problem.Field{
			{Path: "sort", Value: query.Sort, Message: "must be rank, number, value, seconds, epochs or joules"}})
	}
	if query.Descending {
		slices.Reverse(ranked)
	}
	page := protocol.TrialPage{Total: len(ranked), Sequence: sequence}
	limit := query.Limit
	if limit <= 0 {
		limit = 100
	}
	first := min(max(query.Offset, 0), len(ranked))
	page.Trials = ranked[first:min(first+min(limit, maxTrialPage), len(ranked))]
	return page, nil
}

func compareBy(column string, a, b trial.Trial) int {
	switch column {
	case "seconds":
		return cmp.Compare(a.Seconds, b.Seconds)
	case "epochs":
		return cmp.Compare(a.Epochs, b.Epochs)
	case "joules":
		return cmp.Compare(a.Energy.Joules, b.Energy.Joules)
	default:
		return cmp.Compare(a.Number, b.Number)
	}
}

// TrialDetail returns one trial with its reports and its history.
func (s *Service) TrialDetail(ctx context.Context, ref string, number int) (protocol.TrialDetail, error) {
	r, t, err := s.lockedNumber(ctx, ref, number)
	if err != nil {
		return protocol.TrialDetail{}, err
	}
	place := rankOf(number, r.trials, r.study.Definition.Objectives[0].Direction)
	study := r.study.ID
	r.mutex.Unlock()

	detail := protocol.TrialDetail{Trial: protocol.RankedTrial{Trial: t, Rank: place}}
	if detail.Reports, err = s.store.Reports(ctx, t.ID); err != nil {
		return protocol.TrialDetail{}, err
	}
	events, err := s.store.TrialEvents(ctx, study, t.ID)
	if err != nil {
		return protocol.TrialDetail{}, err
	}
	detail.Events = outward(events)
	return detail, nil
}

// lockedNumber returns a study's runtime, locked, and one of its trials.
func (s *Service) lockedNumber(ctx context.Context, ref string, number int) (*runtime, trial.Trial, error) {
	r, err := s.locked(ctx, ref)
	if err != nil {
		return nil, trial.Trial{}, err
	}
	if number < 0 || number >= len(r.trials) {
		name := r.study.Definition.Name
		r.mutex.Unlock()
		return nil, trial.Trial{}, problem.New(problem.NotFound, "study %s has no trial %d", name, number)
	}
	return r, r.trials[number], nil
}

// Log returns what the trial's command printed.
func (s *Service) Log(ctx context.Context, ref string, number int) (string, error) {
	r, t, err := s.lockedNumber(ctx, ref, number)
	if err != nil {
		return "", err
	}
	r.mutex.Unlock()
	return s.logs.Log(ctx, t.ID)
}

// Events returns up to limit events of the study behind the sequence.
func (s *Service) Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error) {
	r, err := s.locked(ctx, ref)
	if err != nil {
		return nil, err
	}
	study := r.study.ID
	r.mutex.Unlock()
	events, err := s.store.Events(ctx, study, after, limit)
	return outward(events), err
}

// WaitEvents returns once the study has events behind the sequence, or with
// the context's error when that ends first.
func (s *Service) WaitEvents(ctx context.Context, ref string, after int64) error {
	for {
		changed := s.changes()
		r, err := s.locked(ctx, ref)
		if err != nil {
			return err
		}
		sequence := r.sequence
		r.mutex.Unlock()
		if sequence > after {
			return nil
		}
		select {
		case <-changed:
		case <-ctx.Done():
			return ctx.Err()
		}
	}
}

// outward turns stored events into the protocol's.
func outward(events []Event) []protocol.Event {
	list := make([]protocol.Event, 0, len(events))
	for _, event := range events {
		out := protocol.Event{
			Study: event.Study, Sequence: event.Sequence, At: event.At, Kind: string(event.Kind),
			Trial: event.Trial, State: event.State, Worker: event.Worker, Reason: event.Reason,
		}
		if number, ok := numberOf(event.Trial); ok {
			out.Number = &number
		}
		if len(event.Data) > 0 {
			out.Data = event.Data
		}
		list = append(list, out)
	}
	return list
}
