package study

import (
	"cmp"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// starting looks up what judging a start of the trial needs.
func (s *Service) starting(r *session.Session, t trial.Trial, now time.Time) starts.Judge {
	if t.State != trial.Leased || len(r.Study.Definition.Command) == 0 {
		return starts.Judge{}
	}
	here := pool.Node{ID: t.Worker, Host: cmp.Or(t.Host, t.Worker), Name: t.Worker}
	if member, _, known := s.allocator.Worker(t.Worker); known {
		here = pool.NodeOf(member)
	}
	return starts.Judge{
		Study: r.ID, Node: here, Now: now, Retries: r.Study.Definition.Retry.Failures, Known: r.Starts, Excluded: s.allocator.Exclusions(r.ID),
		Elsewhere: func(t trial.Trial) bool {
			return s.allocator.Freshest(r.Ask(nil), t.FailedStarts, starts.Hosts(r.Trials)) > 0
		},
	}
}

// judged puts into force what a transaction decided of workers, which is durable now.
func (s *Service) judged(tx *session.Transaction) {
	if len(tx.Start.Exclude)+len(tx.Start.Readmit) == 0 {
		return
	}
	s.allocator.Exclude(tx.Start.Exclude, tx.Start.Readmit)
	for _, one := range tx.Start.Exclude {
		s.options.Logger.Warn("worker excluded from a study", "worker", one.Name, "study", tx.Session.Study.Definition.Name, "until", one.Until, "reason", one.Reason)
	}
	s.sessions.Notify()
}

// shownExclusion is the exclusion as workers and people are told.
func shownExclusion(one pool.Exclusion) protocol.Exclusion {
	return protocol.Exclusion{Reason: one.Reason, Since: one.Since, Until: one.Until}
}
