package study

import (
	"cmp"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// starting looks up what judging a start of the trial needs.
func (s *Service) starting(r *session, t trial.Trial, now time.Time) starts.Judge {
	if t.State != trial.Leased || len(r.study.Definition.Command) == 0 {
		return starts.Judge{}
	}
	here := pool.Node{ID: t.Worker, Host: cmp.Or(t.Host, t.Worker), Name: t.Worker}
	if member, _, known := s.allocator.Worker(t.Worker); known {
		here = pool.NodeOf(member)
	}
	return starts.Judge{
		Study: r.id, Node: here, Now: now, Retries: r.study.Definition.Retry.Failures, Known: r.starts, Excluded: s.allocator.Exclusions(r.id),
		Elsewhere: func(t trial.Trial) bool {
			return s.allocator.Freshest(s.ask(r, nil), t.FailedStarts, starts.Hosts(r.trials)) > 0
		},
	}
}

// failedLately are the failed starts of the queued trials that failed to start not long
// ago, by number.
func (r *session) failedLately(now time.Time) map[int][]trial.FailedStart {
	failed := map[int][]trial.FailedStart{}
	for _, number := range r.queue {
		before := r.trials[number].FailedStarts
		if last := len(before) - 1; last >= 0 && now.Sub(before[last].At) < starts.FirstExclusion {
			failed[number] = before
		}
	}
	return failed
}

// failedStart stages a trial whose command failed before it reported anything.
func (tx *transaction) failedStart(t trial.Trial, reason string) (trial.Trial, error) {
	t, again, reason := tx.start.Failed(t, reason)
	if again {
		return tx.state(t, trial.Queued, fmt.Sprintf("failed (no retry used, as it had not reported and another worker may start it): %s", reason))
	}
	return tx.failed(t, reason)
}

// judged puts into force what a transaction decided of workers, which is durable now.
func (s *Service) judged(tx *transaction) {
	if len(tx.start.Exclude)+len(tx.start.Readmit) == 0 {
		return
	}
	s.allocator.Exclude(tx.start.Exclude, tx.start.Readmit)
	for _, one := range tx.start.Exclude {
		s.options.Logger.Warn("worker excluded from a study", "worker", one.Name, "study", tx.session.study.Definition.Name, "until", one.Until, "reason", one.Reason)
	}
	s.notify()
}

// shownExclusion is the exclusion as workers and people are told.
func shownExclusion(one pool.Exclusion) protocol.Exclusion {
	return protocol.Exclusion{Reason: one.Reason, Since: one.Since, Until: one.Until}
}
