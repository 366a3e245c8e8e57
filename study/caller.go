package study

import (
	"context"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
)

// Administrators is shown as the owner of the studies that no user owns.
const Administrators = access.Administrators

// What a caller is. What it may see and change is decided there and in
// [Service.session], below everything that takes requests.
type (
	Caller = access.Caller
	Sight  = access.Sight
)

// The sights.
const (
	All    = access.All
	Own    = access.Own
	Held   = access.Held
	Shared = access.Shared
)

// Nobody is who has not said who it is: it has no studies and no leases.
func Nobody() Caller { return Caller{Owner: journal.Separator, Sight: Own, Holder: journal.Separator} }

// WithCaller makes the use case called with the context act for the caller.
func WithCaller(ctx context.Context, caller Caller) context.Context {
	return access.WithCaller(ctx, caller)
}

// callerOf is the caller of a use case; the program itself without one.
func callerOf(ctx context.Context) Caller { return access.CallerOf(ctx) }

// called is what the caller calls the study: its name where all that it sees are its
// own, else its reference, since several users may have one of that name.
func called(study Study, c Caller) string {
	if c.Sight == Own {
		return study.Definition.Name
	}
	return study.Reference()
}

// Denied reports whether the error hides from its caller something that there
// is: it reads as if there were nothing.
func Denied(err error) bool { return access.Denied(err) }

// find returns the study that the caller means: by its id, by the name of one
// of its own, or by the reference of any. One that does not exist for the
// caller is missing in the same words as one that does not exist.
func (s *Service) find(ctx context.Context, ref string) (Study, error) {
	caller := callerOf(ctx)
	found, err := s.store.Study(ctx, ref)
	if err == nil && caller.Sees(found.ID, found.Owner) || err != nil && !problem.Is(err, problem.NotFound) {
		return found, err
	}
	if caller.Owner != "" && !strings.Contains(ref, journal.Separator) {
		own, missing := s.store.Study(ctx, journal.Reference(caller.Owner, ref))
		if !problem.Is(missing, problem.NotFound) {
			return own, missing
		}
	}
	if err == nil {
		err = access.Deny(problem.New(problem.NotFound, "there is no study %q", ref))
	}
	return Study{}, err
}

// CheckArtifact returns not_found unless the caller may read the artifact: a
// user those that checkpoints in its studies refer to, a worker the checkpoints
// of the trials it holds, and whoever sees every study all of them.
func (s *Service) CheckArtifact(ctx context.Context, sha256 string) error {
	caller := callerOf(ctx)
	switch caller.Sight {
	case All:
		return nil
	case Own:
		used, err := s.Checkpoints(ctx)
		if err != nil || used[sha256] {
			return err
		}
	case Shared: // who reads pages downloads no weights
		return access.Deny(problem.New(problem.NotFound, "there is no artifact %s", sha256))
	case Held:
	}
	for _, lease := range s.allocator.Leases() {
		if lease.Holder != caller.Holder {
			continue
		}
		r, t, err := s.lockedTrial(ctx, lease.Trial)
		if problem.Is(err, problem.LeaseLost) || problem.Is(err, problem.NotFound) {
			continue
		}
		if err != nil {
			return err
		}
		r.Unlock()
		if t.State.Held() && t.Checkpoint != nil && t.Checkpoint.Artifact == sha256 {
			return nil
		}
	}
	return access.Deny(problem.New(problem.NotFound, "there is no artifact %s", sha256))
}
