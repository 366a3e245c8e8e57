package study

import (
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/study/access"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/poolview"
	"github.com/tandem-tune/tandem/study/registry"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/study/upload"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/scheduler"
)

// leases lease trials to workers, renew the leases and take the results.
type leases struct {
	parts
	logs            journal.LogStore
	scheduler       *scheduler.Scheduler // locked before a session
	truth           *groundtruth.Base
	*upload.Uploads // what was sent, and may be committed
	*sharing

	mutex sync.Mutex           // guards turns
	turns map[string]gate.Gate // of elastic workers, by their id
}

// Lease gives the worker a trial to run, waiting for one up to WaitSeconds.
func (s *leases) Lease(ctx context.Context, request protocol.LeaseRequest) (protocol.LeaseReply, error) {
	wait, cancel := context.WithTimeout(ctx, time.Duration(request.WaitSeconds*float64(time.Second)))
	defer cancel()
	// Who asks for one study, or does not wait, is not in the queue.
	visit := allocator.Visit{Caller: access.CallerOf(ctx), Worker: request.Worker, Study: request.Study, Enqueue: request.Study == "" && request.WaitSeconds > 0}
	for {
		changed := s.sessions.Changes()
		visit.Shares = request.Study == "" && ofSeveral(s.sessions.Loaded())
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
func ofSeveral(studies []*session.Session) bool {
	return slices.ContainsFunc(studies, func(r *session.Session) bool { return r.Owner() != studies[0].Owner() })
}

// tryLease looks once through the studies that may have work. An elastic worker
// asks with several calls at once: each is heard when the one before has what
// it asked for, so that no core is given away twice, and looks at the pool after that.
func (s *leases) tryLease(ctx context.Context, visit allocator.Visit, arrival allocator.Arrival) (reply protocol.LeaseReply, err error) {
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
func (s *leases) search(ctx context.Context, visit allocator.Visit, arrival allocator.Arrival) (reply protocol.LeaseReply, short bool, err error) {
	if visit.Study != "" {
		return s.leaseFrom(ctx, choice{scheduler.Choice{Study: visit.Study, Number: allocator.Next}, true}, visit.Worker)
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

// leaseFrom leases a trial of one study, if there is one and room for it; short
// says that there is only no room.
func (s *leases) leaseFrom(ctx context.Context, chosen choice, worker string) (reply protocol.LeaseReply, short bool, err error) {
	reply, short, postponed, err := s.leaseOnce(ctx, chosen, worker)
	if postponed && err == nil { // now it is queued, and known how much of a GPU it needs
		reply, short, _, err = s.leaseOnce(ctx, chosen, worker)
	}
	return reply, short, err
}

// leaseOnce is one attempt of leaseFrom; postponed says that the study has begun a
// trial which needs more of a GPU than was kept for it.
func (s *leases) leaseOnce(ctx context.Context, chosen choice, worker string) (reply protocol.LeaseReply, short, postponed bool, err error) {
	r, err := s.sessions.Locked(ctx, chosen.Study)
	if err != nil {
		return reply, false, false, err
	}
	defer r.Leave()
	if err := ctx.Err(); err != nil {
		return reply, false, false, err // nobody is there to train what would be leased
	}
	if !access.CallerOf(ctx).Sees(r.ID, r.Study.Owner) { // somebody else is about to have it
		reply, err = session.Answered(r, reply, nil)
		return reply, false, false, err
	}
	if chosen.asked && len(r.Study.Definition.Command) == 0 {
		r.NoteAsker(worker, s.options.Now())
		if session.AtRest(r.Study) {
			if err := s.resumeRest(ctx, r); err != nil {
				return reply, false, false, unsettled{err}
			}
		}
	}
	if r.Study.Status != protocol.StudyRunning || r.Idle() {
		reply, err = session.Answered(r, protocol.LeaseReply{StudyFinished: r.Study.Status.Over()}, nil)
		return reply, false, false, err
	}
	if r.Broken != nil {
		return reply, false, false, r.Broken
	}
	if r.Shifted(s.options.Now()) != "" {
		reply, err = session.Answered(r, reply, nil)
		return reply, false, false, err
	}
	s.gpus.Prepare(ctx, r.GPUStudy())
	here, denied := s.reserve(r, worker, chosen)
	if denied.Joined {
		return reply, false, false, errJoined
	} else if here == nil {
		return reply, denied.Short, false, nil
	}
	defer here.Cancel()
	reply, postponed, err = s.grant(ctx, r, session.Lessee{Reservation: here, Worker: worker, Chosen: chosen.Choice})
	return reply, false, postponed, err
}

// errJoined says that a machine of another type came to wait while the worker chose.
var errJoined = errors.New("the machines that wait have changed")

// unsettled is a commit's error: the store may have made the change all the same.
type unsettled struct{ error }

func (u unsettled) Unwrap() error { return u.error }

// reserve keeps room on the worker for a trial of the study. The study's lock is held.
func (s *leases) reserve(r *session.Session, worker string, chosen choice) (*allocator.Reservation, allocator.Denied) {
	request := r.Request(chosen.Choice)
	request.Worker = worker
	here, denied := s.allocator.Reserve(request)
	r.Denied(denied)
	return here, denied
}

// grant leases what the study has for the worker now.
func (s *leases) grant(ctx context.Context, r *session.Session, here session.Lessee) (reply protocol.LeaseReply, postponed bool, err error) {
	here.Approximation, _ = s.approximation.Of(r.Study.ID)
	here.Holder = access.CallerOf(ctx).Holder
	if here.Known, err = r.Tuning().Known(ctx, s.truth, here.Site); err != nil {
		return reply, false, err
	}
	if len(here.Chosen.Types) > 0 {
		here.Costs, here.Probes = r.Costs(ctx), s.allocator.Probes().Known
	}
	if room := here.Room; room.Elastic && room.Slots-room.Trials > 1 { // it has room for another trial
		one := r.Demand()
		here.Wanted = here.Wanted || one.Ready+one.More > 1 // beside the one that it gets
	}
	tx := r.Begin()
	tx.Here = here
	leased, err := tx.NextTrial()
	if err != nil {
		tx.Abandon()
		return protocol.LeaseReply{}, false, err
	}
	if leased == nil && tx.Study == nil && len(tx.Change.Events) == 0 {
		r.NoteWaiting(tx.Now)
		return protocol.LeaseReply{}, false, nil
	}
	if leased != nil {
		reply.Lease = r.LeaseFor(*leased, s.options.timing())
		reply.Lease.Cores = r.CoresFor(*reply.Lease, here.Reservation)
		reply.Lease.Sprint = here.Approximation.Sprinting(r.Study.Definition.Sprint)
		waited := r.Waited(tx.Now)
		tx.Then(func() {
			lease := r.LeaseRecord(*leased, r.Usage(*leased, here.Room.Machine, r.Resident), tx.Now)
			confirmed := here.Confirm(lease)
			if confirmed.Released {
				s.sessions.Notify()
			}
			s.gpus.Began(r.GPUStudy(), *leased, gpuPlaceOf(*leased, confirmed.Worker, confirmed.Leases))
			s.approximation.Began(*leased, r.Study.Definition, waited, tx.Now)
		})
	} else {
		reply.StudyFinished = tx.Study != nil
		ctx = registry.Unkeyed(ctx) // another study may have a trial for this call
	}
	if err := s.sessions.Commit(ctx, tx, &reply); err != nil {
		return protocol.LeaseReply{}, false, unsettled{err}
	}
	return reply, tx.Postponed, nil
}

// resumeRest lets a study go on that was at rest, as somebody asks for its trials.
func (s *leases) resumeRest(ctx context.Context, r *session.Session) error {
	tx := r.Begin()
	tx.Status(protocol.StudyRunning, "a process asks for its trials")
	return s.sessions.Commit(registry.Unkeyed(ctx), tx, nil)
}

// turnOf is the gate of an elastic worker.
func (s *leases) turnOf(worker string) gate.Gate {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	turn, ok := s.turns[worker]
	if !ok {
		turn = gate.New()
		s.turns[worker] = turn
	}
	return turn
}

// unspoken is why the allocator does not hear the worker: not_found unless it is
// registered and the caller's.
func unspoken(worker string, err error) error {
	if errors.Is(err, allocator.ErrForeign) {
		return access.Deny(poolview.UnknownWorker(worker))
	}
	return poolview.UnknownWorker(worker)
}
