package study

import (
	"context"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/access"
)

// CheckArtifact returns not_found unless the caller may read the artifact: a
// user those that checkpoints in its studies refer to, a worker the checkpoints
// of the trials it holds, and whoever sees every study all of them.
func (s *Service) CheckArtifact(ctx context.Context, sha256 string) error {
	caller := access.CallerOf(ctx)
	switch caller.Sight {
	case access.All:
		return nil
	case access.Own:
		used, err := s.Checkpoints(ctx)
		if err != nil || used[sha256] {
			return err
		}
	case access.Shared: // who reads pages downloads no weights
		return access.Deny(problem.New(problem.NotFound, "there is no artifact %s", sha256))
	case access.Held:
	}
	for _, lease := range s.allocator.Leases() {
		if lease.Holder != caller.Holder {
			continue
		}
		r, t, err := s.sessions.LockedTrial(ctx, lease.Trial)
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
