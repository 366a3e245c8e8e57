package study

import (
	"cmp"
	"context"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/poolview"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare"
	"github.com/tandem-tune/tandem/workers/pool"
)

// Finish ends a lease and says what became of the trial.
func (s *leases) Finish(ctx context.Context, id trial.ID, request protocol.FinishRequest) (protocol.FinishReply, error) {
	r, t, err := s.leased(ctx, id, request.LeaseEpoch)
	if err != nil {
		return protocol.FinishReply{}, err
	}
	defer r.Leave()
	held := pool.Lease{Trial: t.ID, Epoch: t.LeaseEpoch}
	if t.State.Terminal() {
		reply, err := session.Answered(r, protocol.FinishReply{State: t.State, Rung: t.Rung}, nil)
		if err == nil {
			s.release(held)
		}
		return reply, err
	}
	if faults := gpushare.Faults(request.GPUUse); len(faults) > 0 {
		return protocol.FinishReply{}, problem.WithFields("the end of the lease of trial "+string(t.ID)+" is not valid", faults)
	}
	t.GPUUse = t.GPUUse.Plus(request.GPUUse)
	was, tx := t, r.Begin()
	if request.Keyed {
		t = t.Keyed(trial.KeyReleased, "", tx.Now)
	} else if request.KeyRefused != "" {
		t = t.Keyed(trial.KeyRefused, request.KeyRefused, tx.Now)
	}
	tx.Preempted, tx.Crowding = s.crowdingOf(t)
	s.leaving(tx, t)
	tx.Start = s.starting(r, t, tx.Now)
	t, err = tx.End(t, request)
	if err != nil {
		tx.Abandon()
		return protocol.FinishReply{}, err
	}
	reply := protocol.FinishReply{State: t.State, Rung: t.Rung}
	for _, one := range tx.Start.Exclude {
		reply.Excluded = new(poolview.ShownExclusion(one))
	}
	s.hold(tx)
	tx.Then(func() { s.finished(ctx, tx, was, t, request) })
	if err := s.sessions.Commit(ctx, tx, &reply); err != nil {
		return protocol.FinishReply{}, err
	}
	return reply, nil
}

// finished notes beside the study that a trial was given back: what it was and what
// it has become.
func (s *leases) finished(ctx context.Context, tx *session.Transaction, was, now trial.Trial, request protocol.FinishRequest) {
	s.judged(tx)
	if request.GPUUse != nil {
		s.observeGPU(ctx, was, request.GPUUse, 0)
	}
	if now.State.Terminal() {
		s.gpus.Left(now.ID)
	}
	if now.MeasuredAt(now.Rung) {
		s.approximation.Ended(now.ID, request.LeaseEpoch, tx.Now)
	}
	s.release(pool.Lease{Trial: was.ID, Epoch: was.LeaseEpoch})
	if request.Outcome == protocol.Refused {
		s.allocator.Refuse(was.Worker, tx.Session.ID, cmp.Or(request.Reason, "the worker refuses it"))
	}
}

// release ends the lease, unless the trial is out under another by now.
func (s *leases) release(lease pool.Lease) {
	s.approximation.Dropped(lease.Trial, lease.Epoch)
	if s.allocator.Release(lease.Trial, lease.Epoch) {
		s.sessions.Notify()
	}
}

// expire takes a trial from a worker that has not been heard of for a lease term.
func (s *leases) expire(ctx context.Context, lease pool.Lease) error {
	silent := func(t trial.Trial) (how string, explained, lost bool) {
		// A heartbeat may have come while this tick was busy.
		return "worker " + t.Worker + " was not heard of for a lease term", false, !s.allocator.Renewed(lease)
	}
	return s.lose(ctx, lease, silent)
}

// lose takes a trial from its worker, if why says so once the study is locked. Losing it
// and queueing it again are one transaction.
func (s *leases) lose(ctx context.Context, lease pool.Lease, why func(trial.Trial) (how string, explained, lost bool)) error {
	r, t, err := s.sessions.LockedTrial(ctx, lease.Trial)
	if problem.Is(err, problem.LeaseLost) || problem.Is(err, problem.NotFound) {
		s.release(lease)
		return nil
	}
	if err != nil {
		return err
	}
	defer r.Leave()
	if t.LeaseEpoch != lease.Epoch || !t.State.Held() {
		if err := session.Refusal(r, nil); err != nil {
			return err
		}
		s.release(lease)
		return nil
	}
	how, explained, lost := why(t)
	if !lost {
		return nil
	}
	tx := r.Begin()
	if err := tx.Lose(t, how, explained); err != nil {
		tx.Abandon()
		if r.Broken != nil { // it waits for a server that can tell its search
			s.release(lease)
			return nil
		}
		return err
	}
	tx.Then(func() { s.release(lease) })
	return s.sessions.Commit(ctx, tx, nil)
}

// starting looks up what judging a start of the trial needs.
func (s *leases) starting(r *session.Session, t trial.Trial, now time.Time) starts.Judge {
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
func (s *leases) judged(tx *session.Transaction) {
	if len(tx.Start.Exclude)+len(tx.Start.Readmit) == 0 {
		return
	}
	s.allocator.Exclude(tx.Start.Exclude, tx.Start.Readmit)
	for _, one := range tx.Start.Exclude {
		s.options.Logger.Warn("worker excluded from a study", "worker", one.Name, "study", tx.Session.Study.Definition.Name, "until", one.Until, "reason", one.Reason)
	}
	s.sessions.Notify()
}
