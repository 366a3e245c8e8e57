package study

import (
	"context"
	"errors"
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/team"
	"github.com/tandem-tune/tandem/study/warmstart"
	"github.com/tandem-tune/tandem/trial"
)

// PaceOf is what an earlier study's training took, for one pass over its data.
func PaceOf(view protocol.StudyView) (budget.Pace, error) {
	p := view.Progress
	if p.DataPasses == 0 {
		return budget.Pace{}, problem.New(problem.Conflict, "study %s has trained nothing yet: there is no pace to take from it", view.Name)
	}
	pace := budget.Pace{Seconds: p.TrialSeconds / p.DataPasses, Source: "one of study " + view.Name + " took on average"}
	if p.Energy.Method != "" {
		pace.Joules = float64(p.Energy.Joules) / p.DataPasses
		if p.Energy.Estimated() {
			pace.Source += ", whose joules are an estimate too"
		}
	}
	return pace, nil
}

// studies create, change and delete studies.
type studies struct {
	parts
	earlier warmstart.Earlier
}

// CreateWarm stores a checked definition as a new, running study. A name that
// is taken is a conflict. What was sent are results that were measured elsewhere: they
// are stored in the same transaction, and only change what is proposed.
func (s *studies) CreateWarm(ctx context.Context, def definition.Definition, sent []protocol.Observation) (protocol.StudyView, error) {
	if err := s.options.Tariff.Check(def); err != nil {
		return protocol.StudyView{}, err
	}
	prior, err := s.earlier.Gather(ctx, &def, sent)
	if err != nil {
		return protocol.StudyView{}, err
	}
	if def.Search.Seed == 0 {
		def.Search.Seed = s.options.Random() >> 33 // 31 bits: exact in every language's numbers
	}
	method, err := search.New(def.SearchSettings())
	if err != nil {
		return protocol.StudyView{}, err
	}
	now := s.options.Now()
	created := journal.Study{ID: newID(s.options.Random), Owner: access.CallerOf(ctx).Owner, Definition: def, Status: protocol.StudyRunning, Created: now}
	r := s.sessions.Created(created, method)
	r.Lock()
	defer r.Leave()
	tx := r.Begin()
	tx.Change.Insert = &created
	tx.Log(journal.Event{Kind: journal.StudyCreated, State: string(created.Status)}, def)
	if err := tx.Inform(prior, def.Search.Initial); err != nil {
		return protocol.StudyView{}, err
	}
	view := r.View(now)
	view.Useless = s.allocator.Useless(created.Owner, def.Preempt)
	tx.Then(func() { s.sessions.Add(r) })
	if err := s.sessions.Commit(ctx, tx, &view); err != nil {
		if problem.Is(err, problem.Conflict) {
			return protocol.StudyView{}, s.exists(ctx, def)
		}
		return protocol.StudyView{}, err
	}
	return view, nil
}

// exists is the conflict with the study that has the name already.
func (s *studies) exists(ctx context.Context, def definition.Definition) error {
	instead := ""
	if found, err := s.sessions.Find(ctx, def.Name); err == nil {
		if view, err := s.sessions.Summary(ctx, found.ID); err == nil && view.MoreTrials(def.Stop.Trials) != "" {
			instead = fmt.Sprintf(", or give it the trials of this one ('%s')", view.MoreTrials(def.Stop.Trials))
		}
	}
	return problem.New(problem.Conflict, "a study named %q exists already: choose another name, or delete it first%s", def.Name, instead)
}

// newID makes a study id: 10 characters that cannot be misread.
func newID(random func() uint64) string {
	const letters = "23456789abcdefghjkmnpqrstuvwxyz"
	var id strings.Builder
	for bits := random(); id.Len() < 10; bits /= uint64(len(letters)) {
		id.WriteByte(letters[bits%uint64(len(letters))])
	}
	return id.String()
}

// Pause stops handing out trials; running ones take a checkpoint after their
// epoch and go back to the queue.
func (s *studies) Pause(ctx context.Context, ref string) (protocol.StudyView, error) {
	return s.sessions.Change(ctx, ref, func(tx *session.Transaction, current journal.Study) error {
		if current.Status != protocol.StudyRunning && !session.AtRest(current) {
			return problem.New(problem.Conflict, "study %s is %s: only a running study can be paused", current.Definition.Name, current.Status)
		}
		tx.Status(protocol.StudyPaused, "paused by a user")
		return nil
	})
}

// Resume lets a paused study go on.
func (s *studies) Resume(ctx context.Context, ref string) (protocol.StudyView, error) {
	return s.sessions.Change(ctx, ref, func(tx *session.Transaction, current journal.Study) error {
		if current.Status != protocol.StudyPaused {
			return problem.New(problem.Conflict, "study %s is %s: only a paused study can be resumed; 'tandem study extend' gives one that is over more trials", current.Definition.Name, current.Status)
		}
		tx.Status(protocol.StudyRunning, "resumed by a user")
		return nil
	})
}

// Stop ends the study now. What was measured stays; running trials are told to stop.
func (s *studies) Stop(ctx context.Context, ref string) (protocol.StudyView, error) {
	return s.sessions.Change(ctx, ref, func(tx *session.Transaction, current journal.Study) error {
		if current.Status.Over() {
			return problem.New(problem.Conflict, "study %s is %s already", current.Definition.Name, current.Status)
		}
		return tx.Conclude(protocol.StudyStopped, "stopped by a user")
	})
}

// Extend gives the study more of what its stop section bounds; one that is over goes on
// where it ended. The error is invalid and names every fault of the request, or a
// conflict where the study could not go on with it.
func (s *studies) Extend(ctx context.Context, ref string, more protocol.ExtendRequest) (protocol.StudyView, error) {
	return s.sessions.Change(ctx, ref, func(tx *session.Transaction, _ journal.Study) error {
		reopened, err := tx.Extend(ctx, more)
		tx.Then(func() {
			for _, t := range reopened { // workers may not have heard yet that their leases ended with the study
				s.allocator.Release(t.ID, t.LeaseEpoch)
			}
		})
		return err
	})
}

// Set changes what the study gets of the pool from now on; its running trials stay. The error
// is invalid and names every fault of the request.
func (s *studies) Set(ctx context.Context, ref string, wanted protocol.SetRequest) (protocol.StudyView, error) {
	return s.sessions.Change(ctx, ref, func(tx *session.Transaction, current journal.Study) error {
		set, changes, err := current.Set(wanted)
		if err != nil || changes == "" {
			return err
		}
		tx.Study, tx.Change.Update = &set, &set
		tx.Log(journal.Event{Kind: journal.Adjusted, Reason: changes}, set.SetRequest)
		tx.Then(func() { s.allocator.Restate(set.ID, tx.Session.Owner(), set.Definition.Priority) })
		return nil
	})
}

// Delete removes the study and everything of it. Workers still on its trials
// find their leases lost.
func (s *studies) Delete(ctx context.Context, ref string) error {
	r, err := s.sessions.Locked(ctx, ref)
	if err != nil {
		return err
	}
	defer r.Leave()
	tx := r.Begin()
	tx.Change.Delete, tx.Over = r.Study.ID, true
	tx.Change.Pool = append(tx.Change.Pool, journal.PoolEntry{Kind: team.ShareEntry, Name: r.Study.ID})
	tx.Then(func() {
		s.sessions.Forget(r)
		s.allocator.ReleaseAll(r.Trials)
	})
	return s.sessions.Commit(ctx, tx, nil)
}

// AnnotateStudy changes the tags and the note of a study, whatever its status,
// and returns what they are then. The error is invalid and names every fault of
// the amendment.
func (s *studies) AnnotateStudy(ctx context.Context, ref string, amendment trial.Amendment) (trial.Annotation, error) {
	return registry.Update(ctx, s.sessions, ref, func(tx *session.Transaction) (trial.Annotation, error) {
		current := tx.Session.Study
		amended, err := current.Annotation.Amended(amendment)
		if err != nil {
			return amended, session.Refusal(tx.Session, err)
		}
		current.Annotation = amended
		tx.Study, tx.Change.Update = &current, &current
		tx.Log(journal.Event{Kind: journal.Annotated}, amended)
		return amended, nil
	})
}

// AnnotateTrial changes the tags and the note of a trial, whatever its state,
// and returns what they are then. The error is not_found if there is no such
// trial, or invalid and names every fault of the amendment.
func (s *studies) AnnotateTrial(ctx context.Context, ref string, number int, amendment trial.Amendment) (trial.Annotation, error) {
	return registry.Update(ctx, s.sessions, ref, func(tx *session.Transaction) (trial.Annotation, error) {
		t, err := tx.Session.Trial(number)
		if err == nil {
			t.Annotation, err = t.Annotation.Amended(amendment)
		}
		if err != nil {
			return t.Annotation, session.Refusal(tx.Session, err)
		}
		tx.Stage(t)
		tx.Log(journal.Event{Kind: journal.Annotated, Trial: t.ID}, t.Annotation)
		return t.Annotation, nil
	})
}

// Enqueue makes the study try configurations before anything its search
// proposes: all of them, or none if one does not fit. They count toward
// stop.trials. A study that is over, or has no trial left for them, is a
// conflict.
func (s *studies) Enqueue(ctx context.Context, ref string, request protocol.EnqueueRequest) (protocol.EnqueueReply, error) {
	return registry.Update(ctx, s.sessions, ref, func(tx *session.Transaction) (reply protocol.EnqueueReply, err error) {
		name, status := tx.Session.Study.Definition.Name, tx.Session.Study.Status
		if status.Over() {
			return reply, problem.New(problem.Conflict,
				"study %s is %s: nothing can be enqueued; give it more trials first ('tandem study extend')", name, status)
		}
		for i, configuration := range request.Configurations {
			if _, err := tx.Search(search.Event{Kind: search.Enqueued, Configuration: configuration}); err != nil {
				return reply, inRequest(err, i)
			}
		}
		return protocol.EnqueueReply{Study: name, Enqueued: len(request.Configurations), Waiting: tx.Session.Enqueued()}, nil
	})
}

// inRequest says which configuration of the request an error is about.
func inRequest(err error, i int) error {
	var told *problem.Error
	if !errors.As(err, &told) || len(told.Fields) == 0 {
		return err
	}
	faults := make([]problem.Field, len(told.Fields))
	for at, fault := range told.Fields {
		fault.Path = fmt.Sprintf("configurations[%d]%s", i, strings.TrimPrefix(fault.Path, "params"))
		faults[at] = fault
	}
	return problem.WithFields("the configurations do not fit the study's space", faults)
}
