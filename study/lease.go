package study

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/starts"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// Lease gives the worker a trial to run, waiting for one up to WaitSeconds.
func (s *Service) Lease(ctx context.Context, request protocol.LeaseRequest) (protocol.LeaseReply, error) {
	wait, cancel := context.WithTimeout(ctx, time.Duration(request.WaitSeconds*float64(time.Second)))
	defer cancel()
	// Who asks for one study, or does not wait, is not in the queue.
	visit := allocator.Visit{Caller: callerOf(ctx), Worker: request.Worker, Study: request.Study, Enqueue: request.Study == "" && request.WaitSeconds > 0}
	for {
		changed := s.changes()
		visit.Shares = request.Study == "" && ofSeveral(s.loaded())
		arrival, err := s.allocator.Arrive(visit)
		if err != nil {
			return protocol.LeaseReply{}, unspoken(request.Worker, err)
		}
		if visit.Enqueue {
			defer s.allocator.Leave(request.Worker)
			visit.Enqueue = false
		}
		reply, err := s.tryLease(ctx, visit, arrival)
		if err != nil || reply.Lease != nil || reply.StudyFinished {
			return reply, err
		}
		select {
		case <-changed:
		case <-arrival.Wake:
		case <-wait.Done():
			return protocol.LeaseReply{}, ctx.Err()
		}
	}
}

// ofSeveral reports whether the studies belong to several owners.
func ofSeveral(studies []*session) bool {
	return slices.ContainsFunc(studies, func(r *session) bool { return r.owner != studies[0].owner })
}

// tryLease looks once through the studies that may have work. An elastic worker
// asks with several calls at once: each is heard when the one before has what
// it asked for, so that no core is given away twice, and looks at the pool after that.
func (s *Service) tryLease(ctx context.Context, visit allocator.Visit, arrival allocator.Arrival) (reply protocol.LeaseReply, err error) {
	if arrival.Elastic {
		turn := s.turnOf(visit.Worker)
		if !turn.TryEnter() {
			if err := turn.Enter(ctx); err != nil {
				return reply, err
			}
			if arrival, err = s.allocator.Arrive(visit); err != nil {
				turn.Leave()
				return reply, unspoken(visit.Worker, err)
			}
		}
		defer turn.Leave()
	}
	reply, short, err := s.search(ctx, visit, arrival)
	if errors.Is(err, errJoined) { // it chooses again, among them all
		if arrival, err = s.allocator.Arrive(visit); err == nil {
			arrival.Several = true
			reply, short, err = s.search(ctx, visit, arrival)
		}
	}
	if short != arrival.Short {
		s.allocator.NoteShort(visit.Worker, short)
	}
	return reply, err
}

// search asks the studies in turn; short says that one may have had a trial the
// worker had no room for.
func (s *Service) search(ctx context.Context, visit allocator.Visit, arrival allocator.Arrival) (reply protocol.LeaseReply, short bool, err error) {
	if visit.Study != "" {
		return s.leaseFrom(ctx, choice{scheduler.Choice{Study: visit.Study, Number: next}, true}, visit.Worker)
	}
	for _, chosen := range s.scheduler.Choices(ctx, visit.Caller, visit.Worker, arrival) {
		if chosen.Better != "" && s.allocator.Skip(visit.Worker, chosen.Machine, chosen.Study, chosen.Better) {
			continue // it is meant for another one that waits too
		}
		reply, lacks, err := s.leaseFrom(ctx, choice{chosen, false}, visit.Worker)
		short = short || lacks
		switch {
		case problem.Is(err, problem.NotFound): // deleted since
		case errors.Is(err, errJoined):
			return protocol.LeaseReply{}, short, err
		case err != nil && ctx.Err() != nil:
			return protocol.LeaseReply{}, short, ctx.Err()
		case errors.As(err, new(unsettled)):
			// The trial may be leased. Whoever asks again with the same key hears so;
			// who is told that there is nothing would never ask.
			return protocol.LeaseReply{}, short, err
		case err != nil:
			// One study that cannot be served must not stop the others.
			s.options.Logger.Error("cannot lease from study", "study", chosen.Study, "error", err)
		case reply.Lease != nil:
			return reply, short, nil
		}
	}
	return protocol.LeaseReply{}, short, nil
}

// choice is a study that a worker is to have a trial of. asked says that the worker has
// asked for it by its name.
type choice struct {
	scheduler.Choice
	asked bool
}

// next is the number of a trial that the search has not started yet.
const next = allocator.Next

// idle reports that the study surely has nothing to lease now.
func (r *session) idle() bool { return r.waiting && len(r.queue) == 0 }

// leaseFrom leases a trial of one study, if there is one and room for it; short
// says that there is only no room.
func (s *Service) leaseFrom(ctx context.Context, chosen choice, worker string) (reply protocol.LeaseReply, short bool, err error) {
	reply, short, postponed, err := s.leaseOnce(ctx, chosen, worker)
	if postponed && err == nil { // now it is queued, and known how much of a GPU it needs
		reply, short, _, err = s.leaseOnce(ctx, chosen, worker)
	}
	return reply, short, err
}

// leaseOnce is one attempt of leaseFrom; postponed says that the study has begun a
// trial which needs more of a GPU than was kept for it.
func (s *Service) leaseOnce(ctx context.Context, chosen choice, worker string) (reply protocol.LeaseReply, short, postponed bool, err error) {
	r, err := s.locked(ctx, chosen.Study)
	if err != nil {
		return reply, false, false, err
	}
	defer r.leave()
	if err := ctx.Err(); err != nil {
		return reply, false, false, err // nobody is there to train what would be leased
	}
	if chosen.asked && len(r.study.Definition.Command) == 0 {
		r.asks(worker, s.options.Now())
		if atRest(r.study) {
			if err := s.resumeRest(ctx, r); err != nil {
				return reply, false, false, unsettled{err}
			}
		}
	}
	if r.study.Status != protocol.StudyRunning || r.idle() {
		reply, err = answered(r, protocol.LeaseReply{StudyFinished: r.study.Status.Over()}, nil)
		return reply, false, false, err
	}
	if r.broken != nil {
		return reply, false, false, r.broken
	}
	s.gpus.Prepare(ctx, r.gpuStudy())
	here, denied := s.reserve(r, worker, chosen)
	if denied.Joined {
		return reply, false, false, errJoined
	} else if here == nil {
		return reply, denied.Short, false, nil
	}
	defer here.Cancel()
	reply, postponed, err = s.grant(ctx, r, lessee{here, worker, chosen})
	return reply, false, postponed, err
}

// errJoined says that a machine of another type came to wait while the worker chose.
var errJoined = errors.New("the machines that wait have changed")

// unsettled is a commit's error: the store may have made the change all the same.
type unsettled struct{ error }

func (u unsettled) Unwrap() error { return u.error }

// reserve keeps room on the worker for a trial of the study. The study's lock is held.
func (s *Service) reserve(r *session, worker string, chosen choice) (*allocator.Reservation, allocator.Denied) {
	now := s.options.Now()
	request := allocator.Request{
		Ask: s.ask(r, nil), Worker: worker, Parallel: r.study.Definition.Parallel, Running: r.held, Queue: r.queue, Failed: r.failedLately(now),
		Meant: chosen.Number, Seek: now.Sub(r.sought) >= seekEvery, Chosen: len(chosen.Types) > 0, Alone: chosen.Alone,
	}
	_, request.MostGPUs = r.gpus()
	if len(request.Failed) > 0 {
		request.Hosts = starts.Hosts(r.trials)
	}
	if request.SharesGPUs {
		for _, number := range r.queue {
			if until, rests := r.resting[number]; !rests || !now.Before(until) {
				request.Sharers = append(request.Sharers, allocator.Sharer{Number: number, Share: s.expectedUse(r, &r.trials[number]).Share()})
			}
		}
		request.Fresh = allocator.Sharer{Number: next, Share: s.expectedUse(r, nil).Share()}
	}
	here, denied := s.allocator.Reserve(request)
	if denied.Sought {
		r.sought = now
	}
	if denied.OverQuota {
		r.overQuota = true
		r.noted()
	}
	return here, denied
}

// seekEvery is how often a machine is looked for that could be cleared for a
// study.
const seekEvery = time.Second

// lessee is the worker that a trial is leased to, what is kept of it for that, and why
// it was chosen.
type lessee struct {
	*allocator.Reservation
	worker string
	chosen choice
}

// grant leases what the study has for the worker now.
func (s *Service) grant(ctx context.Context, r *session, here lessee) (reply protocol.LeaseReply, postponed bool, err error) {
	tx := s.begin(r)
	tx.here, tx.part = here, here.Part
	tx.approximation, _ = s.approximation.Of(r.study.ID)
	tx.placing = func(t trial.Trial) (trial.Trial, string) { return s.placing(ctx, r, tx, t) }
	tx.holder = callerOf(ctx).Holder
	if tx.known, err = r.tuned().Known(ctx, s.truth, here.Site); err != nil {
		return reply, false, err
	}
	leased, err := tx.nextTrial(here.worker)
	if err != nil {
		tx.abandon()
		return protocol.LeaseReply{}, false, err
	}
	if leased == nil && tx.study == nil && len(tx.change.Events) == 0 {
		r.awaits(tx.now)
		return protocol.LeaseReply{}, false, nil
	}
	if leased != nil {
		reply.Lease = s.leaseOf(r, *leased)
		reply.Lease.Cores = r.sharersCores(*reply.Lease, here.Reservation)
		reply.Lease.Sprint = tx.approximation.Sprinting(r.study.Definition.Sprint)
		waited := r.waited(tx.now)
		tx.then(func() {
			lease := r.leaseRecord(*leased, r.takes(*leased, here.Room.Machine, r.resident), tx.now)
			confirmed := here.Confirm(lease)
			if confirmed.Released {
				s.notify()
			}
			s.gpus.Began(r.gpuStudy(), *leased, gpuPlaceOf(*leased, confirmed.Worker, confirmed.Leases))
			s.approximation.Began(*leased, r.study.Definition, waited, tx.now)
		})
	} else {
		reply.StudyFinished = tx.study != nil
		ctx = unkeyed(ctx) // another study may have a trial for this call
	}
	if err := commit(ctx, s, tx, &reply); err != nil {
		return protocol.LeaseReply{}, false, unsettled{err}
	}
	return reply, tx.postponed, nil
}

// nextTrial decides what a free worker does: a queued trial before anything
// new, then whatever the search says. Nil: nothing now, or the study is over.
func (tx *transaction) nextTrial(worker string) (*trial.Trial, error) {
	number, found := 0, false
	if tx.part != nil { // it was chosen with its part of a GPU
		number, found = tx.part.Number, tx.part.Number != next
	} else {
		number, found = tx.session.nextQueued(tx.now, worker, tx.here.chosen.Number, tx.here.Held)
	}
	if found {
		return tx.lease(tx.trial(number), worker, "goes on")
	}
	for {
		actions, err := tx.search(search.Event{Kind: search.Request})
		if err != nil {
			return nil, err
		}
		if action := actions[0]; action.Kind == search.Promote {
			passed, err := tx.passed(tx.trial(action.Trial), action)
			if err != nil || tx.study != nil { // it may have reached the target
				return nil, err
			}
			if passed {
				continue
			}
		}
		return tx.follow(actions[0], worker)
	}
}

// follow does what the search says.
func (tx *transaction) follow(action search.Action, worker string) (*trial.Trial, error) {
	r := tx.session
	switch action.Kind {
	case search.Create:
		t := trial.Trial{
			ID: trialID(r.study.ID, action.Trial), Study: r.study.ID, Number: action.Trial,
			Configuration: action.Configuration, Origin: action.Origin, RepeatOf: action.RepeatOf, Seed: trialSeed(r.study.Definition.Search.Seed, action.Trial),
			State: trial.Queued, Results: []trial.Result{}, Created: tx.now,
		}
		t, why, err := tx.inherit(tx.atRung(t, action.Rung), action)
		if err != nil {
			return nil, err
		}
		tx.log(Event{Kind: TrialState, Trial: t.ID, State: string(t.State), Reason: action.Reason}, nil)
		return tx.lease(t, worker, why)
	case search.Promote:
		t := tx.trial(action.Trial)
		t.Promotions++
		t = tx.atRung(t, action.Rung)
		t.LastEpoch = t.NextEpoch(r.ladder[action.Rung]) - 1
		return tx.lease(t, worker, action.Reason)
	case search.Wait:
		return nil, nil
	default: // search.Finish
		return nil, tx.conclude(protocol.StudyCompleted, searchEnded)
	}
}

// atRung is the trial with its budget at the rung.
func (tx *transaction) atRung(t trial.Trial, rung int) trial.Trial {
	t.Rung = rung
	return tx.approximation.LeaveOut(t, tx.session.ladder[rung].Budget)
}

func (tx *transaction) lease(t trial.Trial, worker, reason string) (*trial.Trial, error) {
	t.GPUs, t.GPUShare = nil, nil
	if tx.part != nil && !tx.takePart(&t) {
		return nil, tx.postpone(t)
	}
	t.LeaseEpoch++
	t.Worker, t.Host, t.Holder, t.Setting = worker, tx.here.Host, tx.holder, tx.session.tuned().Begin(tx.known, t, tx.here.Site)
	if count := tx.session.gpuCount(t); tx.part == nil && count != nil { // the setting may say how many
		t.GPUs = tx.here.GPUs[:min(*count, len(tx.here.GPUs))]
	}
	if t.Started == nil {
		t.Started = &tx.now
	}
	rung := tx.session.ladder[t.Rung]
	if t.ResumesAt(rung) {
		t.Resumes++
		reason = resumeReason(reason, t, rung)
	}
	t, why := tx.placing(t)
	if why != "" {
		reason += "; " + why
	}
	t, err := tx.state(t, trial.Leased, reason)
	return &t, err
}

func resumeReason(reason string, t trial.Trial, rung budget.Rung) string {
	return fmt.Sprintf("%s; resumes at epoch %d from the checkpoint of epoch %d", reason, t.NextEpoch(rung), t.Checkpoint.Epoch)
}

// leaseOf is the trial as its worker is told about it.
func (s *Service) leaseOf(r *session, t trial.Trial) *protocol.Lease {
	def, rung := r.study.Definition, r.ladder[t.Rung]
	lease := &protocol.Lease{
		Trial: t.ID, Study: def.Name, StudyID: r.study.ID, Number: t.Number, LeaseEpoch: t.LeaseEpoch,
		Rung: t.Rung, Budget: t.Budget, FirstEpoch: t.NextEpoch(rung),
		Params: t.Configuration, System: def.System.Constants, Seed: t.Seed,
		Command: def.Command, Directory: def.Directory, Environment: def.Environment,
		Sandbox: def.Sandbox, Secrets: def.Secrets,
		EpochTimeoutSeconds: def.EpochTimeoutSeconds, StallSeconds: def.StallSeconds, StallEnds: def.StallEnds, Objectives: r.toReport(), Timing: s.timing(), Sprint: def.Sprint,
	}
	if r.gpuCount(t) != nil {
		count := len(t.GPUs)
		lease.GPUs, lease.GPUCount, lease.GPUShared = t.GPUs, &count, t.GPUShare != nil
	}
	lease.Cores = r.resources().Cores
	if t.Setting != nil {
		lease.System = t.Setting.Configuration
	}
	if lease.System == nil {
		lease.System = map[string]space.Value{} // an object, as the interface promises
	}
	if t.ResumesAt(rung) {
		lease.Checkpoint = t.Checkpoint
	}
	return lease
}
