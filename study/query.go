package study

import (
	"context"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/trial"
)

// Studies returns every study that the caller sees, the newest first.
func (s *Service) Studies(ctx context.Context) ([]protocol.StudyView, error) {
	stored, err := s.store.Studies(ctx)
	if err != nil {
		return nil, err
	}
	caller, views := callerOf(ctx), make([]protocol.StudyView, 0, len(stored))
	for _, one := range stored {
		if !caller.Sees(one.ID, one.Owner) {
			continue
		}
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
	return look(ctx, s, ref, func(r *session) (protocol.StudyView, error) {
		view := r.view(s.options.Now())
		if callerOf(ctx).Sight != Shared { // who came by a link hears nothing of workers and users
			view.Waits = s.waits(r)
		}
		return view, nil
	})
}

// TrialDetail returns one trial with its reports and its history.
func (s *Service) TrialDetail(ctx context.Context, ref string, number int) (protocol.TrialDetail, error) {
	var expected *protocol.GPUExpected
	ranked, err := look(ctx, s, ref, func(r *session) (protocol.RankedTrial, error) {
		t, err := r.trial(number)
		if err != nil {
			return protocol.RankedTrial{}, err
		}
		expected = s.gpuExpected(ctx, r, t)
		return ranking.RankOf(number, r.trials, r.study.Definition.Objectives), nil
	})
	if err != nil {
		return protocol.TrialDetail{}, err
	}
	detail, t := protocol.TrialDetail{Trial: ranked, GPUExpected: expected}, ranked.Trial
	if detail.Reports, err = s.store.Reports(ctx, t.ID); err != nil {
		return protocol.TrialDetail{}, err
	}
	events, err := s.store.TrialEvents(ctx, t.Study, t.ID)
	if err != nil {
		return protocol.TrialDetail{}, err
	}
	detail.Events = outward(events)
	return detail, nil
}

func (r *session) frozen() journal.View {
	return journal.View{Study: r.study, Ladder: r.ladder, Trials: slices.Clone(r.trials), Sequence: r.sequence}
}

// Look returns a copy of the study, once all of it is durable.
func (s *Service) Look(ctx context.Context, ref string) (journal.View, error) {
	return look(ctx, s, ref, func(r *session) (journal.View, error) { return r.frozen(), nil })
}

// trial returns one of the study's trials; the error is not_found.
func (r *session) trial(number int) (trial.Trial, error) {
	return journal.View{Study: r.study, Trials: r.trials}.Trial(number)
}

// Log returns what the trial's command printed.
func (s *Service) Log(ctx context.Context, ref string, number int) (string, error) {
	t, err := look(ctx, s, ref, func(r *session) (trial.Trial, error) { return r.trial(number) })
	if err != nil {
		return "", err
	}
	return s.logs.Log(ctx, t.ID)
}

// Followed returns whose study it is whose events the caller wants to follow, and
// the last event that it has.
func (s *Service) Followed(ctx context.Context, ref string) (owner string, last Position, err error) {
	last, err = look(ctx, s, ref, func(r *session) (Position, error) {
		owner = r.study.Owner
		return *r.position(), nil
	})
	return owner, last, err
}

// Events returns up to limit events of the study behind the sequence.
func (s *Service) Events(ctx context.Context, ref string, after int64, limit int) ([]protocol.Event, error) {
	study, err := look(ctx, s, ref, func(r *session) (string, error) { return r.study.ID, nil })
	if err != nil {
		return nil, err
	}
	events, err := s.store.Events(ctx, study, after, limit)
	return outward(events), err
}

// WaitEvents returns once the study has events behind the sequence, or with
// the context's error when that ends first.
func (s *Service) WaitEvents(ctx context.Context, ref string, after int64) error {
	for {
		changed := s.changes()
		sequence, err := look(ctx, s, ref, func(r *session) (int64, error) { return r.sequence, nil })
		if err != nil {
			return err
		}
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
		if number, ok := event.Trial.Number(); ok {
			out.Number = &number
		}
		if len(event.Data) > 0 {
			out.Data = event.Data
		}
		list = append(list, out)
	}
	return list
}

// shelveAfter is how long a study that is over stays in memory unused.
const shelveAfter = 10 * time.Minute

// shelve drops from memory what the store has too, of a study that is over and
// that nobody asked for lately; only what lists show is kept. The next who asks
// for more has it loaded again.
func (r *session) shelve(now time.Time) {
	if r.stale || !r.study.Status.Over() || now.Sub(r.used) < shelveAfter {
		return
	}
	view := r.view(now)
	r.summary = &view
	r.trials, r.queue, r.method, r.stale = nil, nil, nil, true
}

// glance is the study as lists show it. It does not count as a use, so a page
// that lists studies keeps none of them in memory.
func (s *Service) glance(ctx context.Context, id string) (protocol.StudyView, error) {
	r, err := s.session(ctx, id)
	if err != nil {
		return protocol.StudyView{}, err
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	for {
		if r.stale && r.summary != nil {
			return *r.summary, nil
		}
		if err := s.refresh(ctx, r); err != nil {
			return protocol.StudyView{}, err
		}
		now := s.options.Now()
		view := r.view(now)
		if r.wait() == nil {
			r.shelve(now)
			return view, nil
		}
	}
}

// Checkpoints returns the artifacts that checkpoints in studies refer to which the caller
// sees. If it sees all, other artifacts are garbage once their upload is long over.
func (s *Service) Checkpoints(ctx context.Context) (map[string]bool, error) {
	caller := callerOf(ctx)
	studies, err := s.store.Studies(ctx)
	if err != nil {
		return nil, err
	}
	used := make(map[string]bool)
	for _, study := range studies {
		if !caller.Sees(study.ID, study.Owner) {
			continue
		}
		trials, err := s.store.Trials(ctx, study.ID)
		if err != nil {
			return nil, err
		}
		for _, t := range trials {
			for _, checkpoint := range t.Kept(study.Status.Over()) {
				used[checkpoint.Artifact] = true
			}
		}
	}
	return used, nil
}
