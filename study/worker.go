package study

import (
	"context"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// RegisterWorker notes a worker and tells it the timing to keep. Workers are
// known in memory only: after a restart of the server they register again.
func (s *Service) RegisterWorker(_ context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.workers.Register(registration, s.options.Now())
	return s.timing(), nil
}

// RemoveWorker forgets a worker. Leases it still holds run out by themselves.
func (s *Service) RemoveWorker(_ context.Context, worker string) error {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	s.workers.Remove(worker)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.turns, worker)
	return nil
}

func unknownWorker(worker string) error {
	return problem.New(problem.NotFound, "worker %q is not registered: register it (again) with POST /api/v1/workers", worker)
}

// Workers returns the registered workers.
func (s *Service) Workers() []protocol.Worker {
	now := s.options.Now()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	workers := []protocol.Worker{}
	for _, member := range s.workers.Members() {
		silent := now.Sub(member.LastSeen)
		workers = append(workers, protocol.Worker{
			WorkerRegistration: member.Registration, LastSeenSeconds: silent.Seconds(),
			Alive: silent < s.leaseTerm(), Trials: s.leases.HeldBy(member.Registration.ID), Refuses: member.Refuses,
		})
	}
	return workers
}

// seen notes that the worker was heard of.
func (s *Service) seen(worker string) error {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if !s.workers.Seen(worker, s.options.Now()) {
		return unknownWorker(worker)
	}
	return nil
}

// Heartbeat renews the leases a worker holds and tells it which of them it has
// lost or should end. It writes nothing to the store.
func (s *Service) Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	if err := s.seen(worker); err != nil {
		return protocol.HeartbeatReply{}, err
	}
	reply := protocol.HeartbeatReply{Lost: []trial.ID{}, Directives: map[trial.ID]protocol.Directive{}}
	for _, held := range beat.Leases {
		directive, err := s.renew(ctx, held)
		switch {
		case problem.Is(err, problem.LeaseLost), problem.Is(err, problem.NotFound):
			reply.Lost = append(reply.Lost, held.Trial)
		case err != nil:
			return protocol.HeartbeatReply{}, err
		case directive.Action != protocol.Continue:
			reply.Directives[held.Trial] = directive
		}
	}
	return reply, nil
}

func (s *Service) renew(ctx context.Context, held protocol.HeldLease) (protocol.Directive, error) {
	r, t, err := s.lockedTrial(ctx, held.Trial)
	if err != nil {
		return protocol.Directive{}, err
	}
	defer r.leave()
	if err := holds(t, held.LeaseEpoch); err != nil {
		return answered(r, protocol.Directive{}, err)
	}
	if t.State.Held() {
		s.poolMutex.Lock()
		s.leases.Renew(t.ID, t.LeaseEpoch, s.options.Now().Add(s.leaseTerm()))
		s.poolMutex.Unlock()
	}
	if r.stalls(t, held) {
		tx := s.begin(r)
		tx.stall(t, held)
		var nothing struct{}
		if err := commit(unkeyed(ctx), s, tx, &nothing); err != nil {
			return protocol.Directive{}, err
		}
		if t = r.trials[t.Number]; holds(t, held.LeaseEpoch) != nil {
			return answered(r, protocol.Directive{}, holds(t, held.LeaseEpoch))
		}
	}
	directive := r.directive(t)
	if directive.Action == protocol.Continue {
		return directive, nil
	}
	return answered(r, directive, nil)
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

// directive is what a holder of the trial has to do now.
func (r *runtime) directive(t trial.Trial) protocol.Directive {
	switch {
	case t.State.Terminal():
		return protocol.Directive{Action: protocol.Stop, Reason: t.Reason}
	case t.MeasuredAt(t.Rung):
		return protocol.Directive{Action: protocol.Finish, Reason: "the budget of this rung is reached"}
	case r.study.Status == protocol.StudyPaused:
		return protocol.Directive{Action: protocol.Pause, Reason: "the study is paused"}
	case t.Setting != nil:
		return protocol.Directive{Action: protocol.Continue, System: t.Setting.Configuration}
	default:
		return protocol.Directive{Action: protocol.Continue}
	}
}
