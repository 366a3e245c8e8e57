package study

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/duties"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// RegisterWorker notes a worker and tells it the timing to keep. Workers are
// known in memory only: after a restart of the server they register again.
//
// The worker then belongs to the caller: an id that belongs to another is a
// conflict.
func (s *Service) RegisterWorker(ctx context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error) {
	if wrong := selector.Wrong(registration.Labels); wrong != "" {
		return protocol.Timing{}, problem.WithFields("the worker's labels are not valid", []problem.Field{{Path: "labels", Message: wrong}})
	}
	if wrong := selector.WrongTaints(registration.Taints); wrong != "" {
		return protocol.Timing{}, problem.WithFields("the worker's taints are not valid", []problem.Field{{Path: "taints", Message: wrong}})
	}
	switch err := s.allocator.Register(access.CallerOf(ctx), registration); {
	case errors.Is(err, allocator.ErrGone):
		return protocol.Timing{}, problem.New(problem.Forbidden, "the job %s of this worker has ended, its launcher says: what still runs of it gets no trials", registration.Launch)
	case err != nil:
		return protocol.Timing{}, access.Deny(problem.New(problem.Conflict, "the worker id %q is taken: make another one", registration.ID))
	}
	s.gpus.Connect(s.allocator.GPUTypes())
	return s.options.timing(), nil
}

// RemoveWorker forgets a worker. Leases it still holds run out by themselves. A study
// that only it has asked for rests from now on.
func (s *Service) RemoveWorker(ctx context.Context, worker string) error {
	asked := make(map[string]bool)
	for r := range s.sessions.Each() {
		asked[r.ID] = r.Askers[worker]
	}
	if !s.allocator.Remove(access.CallerOf(ctx), worker) {
		return nil // as of one that is not there
	}
	s.leases.mutex.Lock()
	delete(s.turns, worker)
	s.leases.mutex.Unlock()
	own := context.WithoutCancel(access.WithCaller(registry.Unkeyed(ctx), access.Caller{}))
	rest := duties.Rest{On: s.on}
	if err := rest.Those(own, func(r *session.Session) bool { return asked[r.ID] }); err != nil {
		s.options.Logger.Warn("the next tick tries again", "error", err)
	}
	return nil
}

// Gone takes at once what a worker holds whose job has ended, as the engine that ran it
// knows, and forgets the worker. Should it still run, it is not heard: its writes are
// refused, and it cannot register again.
func (s *Service) Gone(ctx context.Context, worker string, told protocol.Gone) (protocol.GoneReply, error) {
	held, err := s.allocator.Gone(access.CallerOf(ctx), worker, told.Launch)
	switch {
	case errors.Is(err, allocator.ErrGone):
		return protocol.GoneReply{}, problem.WithFields("another worker is meant", []problem.Field{{Path: "launch", Message: "the worker did not register with this launch: GET /workers shows its own", Value: told.Launch}})
	case err != nil:
		return protocol.GoneReply{}, unspoken(worker, err)
	}
	own := context.WithoutCancel(access.WithCaller(registry.Unkeyed(ctx), access.Caller{}))
	why := func(t trial.Trial) (how string, explained, lost bool) {
		return fmt.Sprintf("worker %s is gone: %s", t.Worker, cmp.Or(told.Why, string(told.Cause))), told.Cause.Explains(), true
	}
	answer := protocol.GoneReply{Trials: []trial.ID{}}
	for _, lease := range held {
		if err := s.lose(own, lease, why); err != nil {
			return protocol.GoneReply{}, err // the launcher tells it again
		}
		answer.Trials = append(answer.Trials, lease.Trial)
	}
	s.allocator.Bury(worker)
	s.options.Logger.Warn("worker gone", "worker", worker, "cause", told.Cause, "why", told.Why, "trials", len(held))
	return answer, nil
}

// Heartbeat renews the leases a worker holds and tells it which of them it has
// lost or should end. It writes to the store only what is heard for the first time.
func (s *leases) Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	if err := s.allocator.Heartbeat(access.CallerOf(ctx), worker, beat); err != nil {
		return protocol.HeartbeatReply{}, unspoken(worker, err)
	}
	reply := protocol.HeartbeatReply{Lost: []trial.ID{}, Directives: map[trial.ID]protocol.Directive{}}
	for _, held := range beat.Leases {
		directive, err := s.renew(ctx, held)
		switch {
		case problem.Is(err, problem.LeaseLost), problem.Is(err, problem.NotFound):
			reply.Lost = append(reply.Lost, held.Trial)
		case err != nil:
			s.Excuse(ctx, worker)
			return protocol.HeartbeatReply{}, err
		case directive.Action != protocol.Continue:
			reply.Directives[held.Trial] = directive
		}
	}
	reply.Hurried = s.sprinting(worker)
	return reply, nil
}

// Excuse renews the leases of a worker whose heartbeat came and could not be taken,
// for want of memory, say, or of a store that answers: no worker is to blame for
// that. It writes nothing to the store and asks it nothing.
func (s *leases) Excuse(ctx context.Context, worker string) {
	s.allocator.Excuse(access.CallerOf(ctx), worker)
}

// heard is the trial with what its worker says for the first time, for people to see: that
// it has the key, or that the script shows no sign of life. Its worker ends the script
// where the study wants that.
func heard(t trial.Trial, held protocol.HeldLease, limit float64, now time.Time) (told trial.Trial, first bool) {
	if held.Keyed && t.Attesting() {
		t, first = t.Keyed(trial.KeyReleased, "", now), true
		t.Reason = "the broker released the key"
	}
	if limit > 0 && held.QuietSeconds >= limit && !t.Stalled && t.State.Held() && !t.MeasuredAt(t.Rung) {
		t.Stalled, first = true, true
		t.Reason = fmt.Sprintf("stalled: no report, no output and next to no CPU time for %.0f s", held.QuietSeconds)
	}
	return t, first
}

func (s *leases) renew(ctx context.Context, held protocol.HeldLease) (protocol.Directive, error) {
	r, t, err := s.leased(ctx, held.Trial, held.LeaseEpoch)
	if err != nil {
		return protocol.Directive{}, err
	}
	defer r.Leave()
	if t.State.Held() {
		s.allocator.Renew(t.ID, t.LeaseEpoch)
	}
	s.noteGPU(r, t, held.GPUUse)
	if told, first := heard(t, held, r.Study.Definition.StallSeconds, s.options.Now()); first {
		tx := r.Begin()
		tx.Note(told)
		if err := s.sessions.Commit(registry.Unkeyed(ctx), tx, nil); err != nil {
			return protocol.Directive{}, err
		}
		if t = r.Trials[t.Number]; holds(t, held.LeaseEpoch) != nil {
			return session.Answered(r, protocol.Directive{}, holds(t, held.LeaseEpoch))
		}
	}
	directive := s.directive(r, t)
	if directive.Action == protocol.Continue {
		return directive, nil
	}
	return session.Answered(r, directive, nil)
}

// leased is the trial, and its study until it is left, if the lease is the trial's.
func (p parts) leased(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch) (*session.Session, trial.Trial, error) {
	r, t, err := p.sessions.LockedTrial(ctx, id)
	if err != nil {
		return nil, t, err
	}
	if err := holds(t, epoch); err != nil {
		defer r.Leave()
		return nil, t, session.Refusal(r, err)
	}
	return r, t, nil
}

// holds checks that the lease epoch is the trial's present one, and that the
// trial is out with that lease or was ended under it.
func holds(t trial.Trial, epoch trial.LeaseEpoch) error {
	if t.LeaseEpoch != epoch || !t.State.Held() && !t.State.Terminal() {
		return problem.New(problem.LeaseLost, "trial %s is %s under lease %d; lease %d is over: stop working on it",
			t.ID, t.State, t.LeaseEpoch, epoch)
	}
	return nil
}

// sprinting are the worker's trials of a lower priority than one that waits for it.
func (s *leases) sprinting(worker string) (trials []trial.ID) {
	above, awaited := s.approximation.AwaitedOn(worker)
	if !awaited {
		return nil
	}
	_, held, _ := s.allocator.Worker(worker)
	for _, lease := range held {
		if lease.Priority < above {
			trials = append(trials, lease.Trial)
		}
	}
	return trials
}
