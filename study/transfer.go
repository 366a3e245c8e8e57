package study

import (
	"cmp"
	"context"
	"fmt"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Transfer gives the study to another owner, whose quota counts what its trials hold from
// then on, or another name. What they have used stays with who had it, whose own workers lose
// their trials of it to others. The error is invalid for an owner who is no user or lacks a
// data set, and a conflict where the name is taken.
func (s *Service) Transfer(ctx context.Context, ref string, to protocol.Ownership) (protocol.StudyView, error) {
	owner := to.Owner
	if owner == access.Administrators {
		owner = ""
	}
	found, err := s.sessions.Find(ctx, ref)
	name := cmp.Or(to.Name, found.Definition.Name)
	if err == nil {
		err = s.mayOwn(ctx, found, owner, name)
	}
	if err != nil {
		return protocol.StudyView{}, err
	}
	by := cmp.Or(access.CallerOf(ctx).Owner, access.Administrators)
	view, err := s.sessions.Change(ctx, found.ID, func(tx *session.Transaction, current journal.Study) error {
		if current.Owner == owner && current.Definition.Name == name {
			return nil
		}
		tx.Transfer(owner, name, by)
		taken, err := takeFromOthers(tx, owner)
		tx.Then(func() {
			for _, lease := range taken {
				s.leases.release(lease)
			}
			s.allocator.Restate(found.ID, owner, tx.Session.Study.Definition.Priority)
		})
		return err
	})
	if problem.Is(err, problem.Conflict) { // somebody else was faster
		err = nameTaken(owner, name)
	}
	return view, err
}

// takeFromOthers takes the study's trials from workers that take those of another user
// alone, and returns the leases they had.
func takeFromOthers(tx *session.Transaction, owner string) (taken []pool.Lease, err error) {
	for _, t := range tx.Session.Trials {
		user, alone := access.UserOf(t.Holder)
		if !alone || user == owner || !t.State.Held() || tx.Session.Broken != nil { // whose search cannot be told
			continue
		}
		taken = append(taken, pool.Lease{Trial: t.ID, Epoch: t.LeaseEpoch})
		if err := tx.Lose(t, fmt.Sprintf("worker %s is %s's, and the study is not", t.Worker, user), true); err != nil {
			return nil, err
		}
	}
	return taken, nil
}

// mayOwn says why the study cannot be the owner's under the name.
func (s *Service) mayOwn(ctx context.Context, one journal.Study, owner, name string) error {
	if err := s.isUser(ctx, owner); err != nil {
		return err
	}
	other, err := s.store.Study(ctx, journal.Reference(owner, name))
	switch {
	case err == nil && other.ID != one.ID && other.Reference() == journal.Reference(owner, name):
		return nameTaken(owner, name)
	case err != nil && !problem.Is(err, problem.NotFound):
		return err
	case one.Status.Over():
		return nil
	}
	err = s.CheckDatasets(access.WithCaller(ctx, access.Caller{Owner: owner}), one.Definition)
	if problem.Is(err, problem.Invalid) {
		return noOwner(owner, "lacks a data set that the study uses: have that user publish it first ('tandem dataset encrypt' with their token)")
	}
	return err
}

// isUser refuses an owner who is nobody here.
func (s *Service) isUser(ctx context.Context, owner string) error {
	known := owner == "" || access.IsUser(owner)
	if known && owner != "" && s.options.Users != nil {
		users, err := s.options.Users(ctx)
		if err != nil {
			return err
		}
		_, signedIn := s.Identities()[owner]
		known = users[owner] || signedIn
	}
	if !known {
		return noOwner(owner, "must be a user of this server, or admin: 'tandem user list' names them, and 'tandem token create --scope user --name NAME' makes one")
	}
	return nil
}

// noOwner refuses the owner for the reason.
func noOwner(owner, reason string) error {
	fault := problem.Field{Path: "owner", Value: cmp.Or(owner, access.Administrators), Message: reason}
	return problem.WithFields("the study cannot be transferred", []problem.Field{fault})
}

// nameTaken is a conflict: the owner has a study of the name.
func nameTaken(owner, name string) error {
	return &problem.Error{Code: problem.Conflict, Detail: "the study cannot be transferred", Fields: []problem.Field{{
		Path: "name", Value: name, Message: cmp.Or(owner, access.Administrators) + " has a study of this name already: give another one (--name NAME)",
	}}}
}
