// Package registry holds the studies in memory: it finds the one that a caller means and may
// see, loads and locks its session, and commits what was decided on it. Who waits for work or
// for events is woken here.
package registry

import (
	"cmp"
	"context"
	"iter"
	"maps"
	"slices"
	"strings"
	"sync"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
)

// Registry holds the studies in memory. It is safe for concurrent use.
//
// A session is never locked while the registry's lock is held, since commits take them the
// other way round.
type Registry struct {
	store   journal.Store
	options session.Options
	roles   Roles

	mutex    sync.Mutex // guards the fields below
	sessions map[string]*session.Session
	ended    map[protocol.StudyStatus]int // counts studies that have ended
	changed  chan struct{}                // closed and replaced whenever anything changes
}

// Roles returns the role that groups give the user on the study.
type Roles func(user, study string) access.Role

// New returns a registry without studies.
func New(options session.Options, roles Roles) *Registry {
	return &Registry{
		store: options.Store, options: options, roles: roles,
		sessions: make(map[string]*session.Session), ended: make(map[protocol.StudyStatus]int), changed: make(chan struct{}),
	}
}

// Loaded returns the sessions in memory.
func (s *Registry) Loaded() []*session.Session {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return slices.AppendSeq(make([]*session.Session, 0, len(s.sessions)), maps.Values(s.sessions))
}

// Each yields the sessions in memory, each while it is locked.
func (s *Registry) Each() iter.Seq[*session.Session] {
	return func(yield func(*session.Session) bool) {
		for _, r := range s.Loaded() {
			r.Lock()
			more := yield(r)
			r.Unlock()
			if !more {
				return
			}
		}
	}
}

// InMemory returns the study's session; nil if it is not loaded.
func (s *Registry) InMemory(study string) *session.Session {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.sessions[study]
}

// Session returns the study's session, loading it when needed. It is the one
// way to a study: what the caller may not see is not found here.
func (s *Registry) Session(ctx context.Context, ref string) (*session.Session, error) {
	r, err := s.session(ctx, ref)
	return r, s.near(ctx, ref, err)
}

func (s *Registry) session(ctx context.Context, ref string) (*session.Session, error) {
	s.mutex.Lock()
	loaded, ok := s.sessions[ref]
	s.mutex.Unlock()
	if ok {
		if _, allowed := s.reach(access.CallerOf(ctx), loaded.ID, loaded.Owner()); allowed {
			return loaded, nil
		}
	}
	stored, err := s.find(ctx, ref)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	r, ok := s.sessions[stored.ID]
	if !ok {
		r = session.New(&s.options, stored)
		s.sessions[stored.ID] = r
	}
	s.mutex.Unlock()
	r.Lock()
	defer r.Unlock()
	return r, s.refresh(ctx, r)
}

// Locked returns the study's session with its lock held and its state fresh.
func (s *Registry) Locked(ctx context.Context, ref string) (*session.Session, error) {
	r, err := s.locked(ctx, ref)
	return r, s.near(ctx, ref, err)
}

func (s *Registry) locked(ctx context.Context, ref string) (*session.Session, error) {
	r, err := s.session(ctx, ref)
	if err != nil {
		return nil, err
	}
	r.Lock()
	if err := s.refresh(ctx, r); err != nil {
		r.Unlock()
		return nil, err
	}
	r.Used = s.options.Now()
	return r, nil
}

// LockedTrial returns the session of a trial's study, locked, and the trial, to
// whom may write under its lease. A trial that does not exist (its study was
// deleted) is a lost lease, and so is one that somebody else holds.
func (s *Registry) LockedTrial(ctx context.Context, id trial.ID) (*session.Session, trial.Trial, error) {
	study, _, ok := strings.Cut(string(id), "-")
	if !ok {
		return nil, trial.Trial{}, problem.New(problem.NotFound, "there is no trial %q", id)
	}
	r, err := s.locked(ctx, study)
	if problem.Is(err, problem.NotFound) {
		lost := error(problem.New(problem.LeaseLost, "trial %s is gone: its study was deleted, or is another user's", id))
		if access.Denied(err) {
			lost = access.Deny(lost)
		}
		return nil, trial.Trial{}, lost
	}
	if err != nil {
		return nil, trial.Trial{}, err
	}
	number, ok := id.Number()
	if !ok || number >= len(r.Trials) {
		r.Unlock()
		return nil, trial.Trial{}, problem.New(problem.NotFound, "there is no trial %q", id)
	}
	t := r.Trials[number]
	if !access.CallerOf(ctx).Holds(t.Holder) {
		r.Unlock()
		return nil, trial.Trial{}, access.Deny(problem.New(problem.LeaseLost, "trial %s is out under a lease of another worker: stop working on it", id))
	}
	return r, t, nil
}

// Notify wakes everybody who waits for work or for events.
func (s *Registry) Notify() {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	close(s.changed)
	s.changed = make(chan struct{})
}

// Changes returns a channel that is closed at the next change.
func (s *Registry) Changes() <-chan struct{} {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.changed
}

// Forget drops a session whose study is not in the store any more.
func (s *Registry) Forget(r *session.Session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.sessions[r.Study.ID] == r {
		delete(s.sessions, r.Study.ID)
	}
}

// refresh loads the session from the store if it is stale.
func (s *Registry) refresh(ctx context.Context, r *session.Session) error {
	err := r.Refresh(ctx)
	if problem.Is(err, problem.NotFound) {
		s.Forget(r)
	}
	return err
}

// reach is what [access.Caller.Reaches] says of the study.
func (s *Registry) reach(caller access.Caller, study, owner string) (exists, allowed bool) {
	return caller.Reaches(study, owner, s.RoleOf(caller, study))
}

// RoleOf is the role that groups give the caller on the study.
func (s *Registry) RoleOf(caller access.Caller, study string) access.Role {
	if caller.Sight != access.Own || s.roles == nil {
		return access.NoRole
	}
	return s.roles(caller.Owner, study)
}

// Allows reports whether the caller may do what it asks for with the study.
func (s *Registry) Allows(caller access.Caller, study, owner string) bool {
	_, allowed := s.reach(caller, study, owner)
	return allowed
}

// Find returns the study that the caller means: by its id, by the name of one
// of its own, or by the reference of any. One that does not exist for the
// caller is missing in the same words as one that does not exist; one on which it has
// too small a role is forbidden.
func (s *Registry) Find(ctx context.Context, ref string) (journal.Study, error) {
	found, err := s.find(ctx, ref)
	return found, s.near(ctx, ref, err)
}

// near adds to the error about a study that is missing the name that was probably meant, of
// those that the caller sees.
func (s *Registry) near(ctx context.Context, ref string, err error) error {
	caller := access.CallerOf(ctx)
	if !problem.Is(err, problem.NotFound) || caller.Sight != access.All && caller.Sight != access.Own {
		return err
	}
	stored, failed := s.store.Studies(ctx)
	if failed != nil {
		return err // without an offer
	}
	compared, names := make([]string, 0, len(stored)), make(map[string]string)
	for _, one := range stored {
		if exists, _ := s.reach(caller, one.ID, one.Owner); !exists {
			continue
		}
		name, shown := one.Definition.Name, NameFor(one, caller)
		if strings.Contains(ref, journal.Separator) {
			name = one.Reference()
		}
		if _, other := names[name]; !other || shown == name { // the caller's own first
			names[name] = shown
		}
		compared = append(compared, name)
	}
	meant := problem.Meant(ref, compared)
	if meant == "" {
		return err
	}
	offered := error(problem.New(problem.NotFound, "%s; did you mean %s?", err, names[meant]))
	if access.Denied(err) {
		return access.Deny(offered)
	}
	return offered
}

func (s *Registry) find(ctx context.Context, ref string) (journal.Study, error) {
	caller := access.CallerOf(ctx)
	found, err := s.store.Study(ctx, ref)
	exists, allowed := false, false
	if err == nil {
		exists, allowed = s.reach(caller, found.ID, found.Owner)
	}
	shared := exists && !caller.Sees(found.ID, found.Owner) && found.ID != ref // by a name, which one of its own may have too
	if allowed && !shared || err != nil && !problem.Is(err, problem.NotFound) {
		return found, err
	}
	if caller.Owner != "" && !strings.Contains(ref, journal.Separator) {
		own, missing := s.store.Study(ctx, journal.Reference(caller.Owner, ref))
		if !problem.Is(missing, problem.NotFound) {
			return own, missing
		}
	}
	switch {
	case allowed:
		return found, nil
	case exists:
		err = problem.New(problem.Forbidden, "study %s is %s's, and your role on it is %s: this takes the role %s", found.Definition.Name, cmp.Or(found.Owner, access.Administrators), s.RoleOf(caller, found.ID), caller.Asks)
	case err == nil:
		err = access.Deny(problem.New(problem.NotFound, "there is no study %q", ref))
	case caller.Sight == access.All && caller.Owner == "" && !strings.Contains(ref, journal.Separator):
		err = problem.New(problem.NotFound, "there is no study %q of an administrator: a user's is OWNER:NAME", ref)
	}
	return journal.Study{}, err
}

// NameFor is what the caller calls the study: its name where it is its own, else its
// reference, since several users may have one of that name.
func NameFor(study journal.Study, c access.Caller) string {
	if c.Sight == access.Own && c.Owner == study.Owner {
		return study.Definition.Name
	}
	return study.Reference()
}

// SeenBy reports whether the caller sees the study of a trial that is out.
func (s *Registry) SeenBy(caller access.Caller, study string) bool {
	r := s.InMemory(study)
	return r != nil && caller.Sees(r.ID, r.Owner())
}

// StudyOf is the study and the number of a trial.
func StudyOf(id trial.ID) (study string, number int) {
	study, _, _ = strings.Cut(string(id), "-")
	number, _ = id.Number()
	return study, number
}

// Created returns the session of a study that is about to be stored with its search. It is
// among the others once [registry.add] was called.
func (s *Registry) Created(study journal.Study, method *search.Method) *session.Session {
	return session.Created(&s.options, study, method)
}

// Add adds the session of a study that was stored.
func (s *Registry) Add(r *session.Session) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if _, loaded := s.sessions[r.ID]; !loaded { // by somebody who saw it in the store
		s.sessions[r.ID] = r
	}
}

// Ended counts the studies that have ended since the start, by status.
func (s *Registry) Ended() map[protocol.StudyStatus]int {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return maps.Clone(s.ended)
}

// Summary is the study as lists show it.
func (s *Registry) Summary(ctx context.Context, id string) (protocol.StudyView, error) {
	r, err := s.Session(ctx, id)
	if err != nil {
		return protocol.StudyView{}, err
	}
	view, err := r.Summary(ctx)
	if problem.Is(err, problem.NotFound) {
		s.Forget(r)
	}
	return view, err
}

// IsQueued reports whether the trial waits.
func (s *Registry) IsQueued(id trial.ID) bool {
	study, number := StudyOf(id)
	r := s.InMemory(study)
	if r == nil {
		return false
	}
	r.Lock()
	defer r.Unlock()
	return slices.Contains(r.Queue, number)
}
