package study

import (
	"context"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// RegisterWorker notes a worker and tells it the timing to keep. Workers are
// known in memory only: after a restart of the server they register again.
//
// The worker then belongs to the caller: an id that belongs to another is a
// conflict.
func (s *Service) RegisterWorker(ctx context.Context, registration protocol.WorkerRegistration) (protocol.Timing, error) {
	caller := callerOf(ctx)
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if present, known := s.workers.Member(registration.ID); known && !caller.holds(present.Holder) {
		return protocol.Timing{}, denial{problem.New(problem.Conflict, "the worker id %q is taken: make another one", registration.ID)}
	}
	s.workers.Register(registration, caller.Holder, s.options.Now())
	s.counted = counted{}
	s.gpus.Connect(s.connectedGPUs())
	return s.timing(), nil
}

// RemoveWorker forgets a worker. Leases it still holds run out by themselves. A study
// that only it has asked for rests from now on.
func (s *Service) RemoveWorker(ctx context.Context, worker string) error {
	asked := make(map[string]bool)
	for _, r := range s.loaded() {
		r.mutex.Lock()
		asked[r.id] = r.askers[worker]
		r.mutex.Unlock()
	}
	if !s.removed(ctx, worker) {
		return nil // as of one that is not there
	}
	own := context.WithoutCancel(WithCaller(unkeyed(ctx), Caller{}))
	if err := s.restThose(own, func(r *session) bool { return asked[r.id] }); err != nil {
		s.options.Logger.Warn("the next tick tries again", "error", err)
	}
	return nil
}

// removed takes the worker off the list; false if it is not the caller's.
func (s *Service) removed(ctx context.Context, worker string) bool {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if member, known := s.workers.Member(worker); known && !callerOf(ctx).holds(member.Holder) {
		return false
	}
	s.workers.Remove(worker)
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.turns, worker)
	return true
}

func unknownWorker(worker string) error {
	return problem.New(problem.NotFound, "worker %q is not registered: register it (again) with POST /api/v1/workers", worker)
}

// mine returns not_found unless the worker is registered and the caller's. The
// pool's lock is held.
func (s *Service) mine(ctx context.Context, worker string) error {
	member, known := s.workers.Member(worker)
	if !known {
		return unknownWorker(worker)
	}
	if !callerOf(ctx).holds(member.Holder) {
		return denial{unknownWorker(worker)}
	}
	return nil
}

// Workers returns the registered workers, each with what it has to do with
// studies that the caller sees.
func (s *Service) Workers(ctx context.Context) []protocol.Worker {
	workers := s.registered()
	caller := callerOf(ctx)
	if caller.Sight == All {
		return workers
	}
	for i, worker := range workers {
		workers[i].Trials = slices.DeleteFunc(worker.Trials, func(id trial.ID) bool {
			study, _, _ := strings.Cut(string(id), "-")
			return !s.seenBy(caller, study)
		})
		refuses := maps.Clone(worker.Refuses) // the registry's own
		maps.DeleteFunc(refuses, func(study, _ string) bool { return !s.seenBy(caller, study) })
		workers[i].Refuses = refuses
		maps.DeleteFunc(worker.Excluded, func(study string, _ protocol.Exclusion) bool { return !s.seenBy(caller, study) })
	}
	return workers
}

// seenBy reports whether the caller sees the study of a trial that is out.
func (s *Service) seenBy(caller Caller, study string) bool {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	r, loaded := s.sessions[study]
	return loaded && caller.sees(r.id, r.owner)
}

// registered returns the registered workers.
func (s *Service) registered() []protocol.Worker {
	now := s.options.Now()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	workers := []protocol.Worker{}
	for _, member := range s.workers.Members() {
		silent := now.Sub(member.LastSeen)
		workers = append(workers, protocol.Worker{
			WorkerRegistration: member.Registration, LastSeenSeconds: silent.Seconds(),
			Alive: silent < s.leaseTerm(), Load: member.Load, Sprint: member.Sprint, Trials: s.leases.HeldBy(member.Registration.ID), Refuses: member.Refuses, Excluded: shownExclusions(member), Drained: s.drainOf(member),
		})
	}
	return workers
}

// seen notes that the worker was heard of, by whom it belongs to.
func (s *Service) seen(ctx context.Context, worker string) error {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if err := s.mine(ctx, worker); err != nil {
		return err
	}
	s.workers.Seen(worker, s.options.Now())
	return nil
}

// Heartbeat renews the leases a worker holds and tells it which of them it has
// lost or should end. It writes nothing to the store.
func (s *Service) Heartbeat(ctx context.Context, worker string, beat protocol.Heartbeat) (protocol.HeartbeatReply, error) {
	if err := s.seen(ctx, worker); err != nil {
		return protocol.HeartbeatReply{}, err
	}
	if beat.Sprint != nil {
		s.poolMutex.Lock()
		s.workers.NoteSprint(worker, beat.Sprint)
		s.poolMutex.Unlock()
	}
	if beat.Load != nil {
		s.poolMutex.Lock()
		s.workers.NoteLoad(worker, beat.Load, s.options.Now())
		s.poolMutex.Unlock()
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
func (s *Service) Excuse(ctx context.Context, worker string) {
	caller, now := callerOf(ctx), s.options.Now()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if member, known := s.workers.Member(worker); known && caller.holds(member.Holder) {
		s.workers.Seen(worker, now)
	}
	for _, lease := range s.leases.Of(worker) {
		if caller.holds(lease.Holder) {
			s.leases.Renew(lease.Trial, lease.Epoch, now.Add(s.leaseTerm()))
		}
	}
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
	s.noteGPU(r, t, held.GPUUse)
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
	directive := s.directive(r, t)
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
func (r *session) directive(t trial.Trial) protocol.Directive {
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
