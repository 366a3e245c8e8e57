package study

import (
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// preemptPause is how long a trial that made way is left in peace.
const preemptPause = 10 * time.Minute

// preempt lets trials make way for studies that ask for that, may, and have work
// and no room. It is called at every tick: a worker that is busy asks for nothing.
func (s *Service) preempt(now time.Time) {
	room := map[string]map[string]bool{}
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if r.pressing() {
			room[r.id] = s.makeWay(r, now)
		}
		r.mutex.Unlock()
	}
	s.poolMutex.Lock()
	lapsed := s.leases.Stand(now, func(study, worker string) bool { return room[study][worker] })
	s.poolMutex.Unlock()
	if lapsed {
		s.notify() // whoever waits may have what was left
	}
}

// pressing reports whether the study asks for preemption and has work.
func (r *session) pressing() bool { return r.study.Definition.Preempt && r.wanting() }

// wanting reports whether the study has work for workers and may have one more of
// them.
func (r *session) wanting() bool {
	return !r.stale && r.broken == nil && len(r.study.Definition.Command) > 0 &&
		r.study.Status == protocol.StudyRunning && r.mayStart() && !r.full(0)
}

// mayStart reports whether the study may have a trial to start: one is queued,
// more may be made, or one was measured and may go up. The search is asked only
// when a worker is free, so that a study whose last trials run has not heard yet
// that this was all.
func (r *session) mayStart() bool {
	if r.idle() {
		return false
	}
	most := r.study.Definition.Stop.Trials
	if len(r.queue) > 0 || most == 0 || len(r.trials) < most || r.study.Definition.Search.Repeats != nil {
		return true
	}
	for _, t := range r.trials {
		if t.State == trial.Paused {
			return true
		}
	}
	return false
}

// mayPreempt reports whether the study's owner may have others make way: the
// administrators, and users whose quota says so. The pool's lock is held.
func (s *Service) mayPreempt(r *session) bool {
	return r.owner == "" || s.rules.quotas[r.owner].Preempt
}

// atLeast reports whether the study comes before the one that claims a place: its
// priority is higher, or the same and it preempts too. The pool's lock is held.
func (s *Service) atLeast(r *session, claim pool.Claim) bool {
	own := r.study.Definition.Priority
	return own > claim.Priority || own == claim.Priority && r.study.Definition.Preempt && s.mayPreempt(r)
}

// makeWay asks the workers of the trials in the study's way to pause them. It returns
// the workers of which the study may have what is left. The study's lock is held.
func (s *Service) makeWay(r *session, now time.Time) (may map[string]bool) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if !s.mayPreempt(r) || s.overQuota(r, s.need(r, 1), pool.Amount{}).reason != "" {
		return nil
	}
	may = map[string]bool{}
	var hosts []pool.Host
	needs := s.needs(r)
	for _, member := range s.workers.Members() {
		need := needs(max(1, member.Registration.Machine.Cores))
		if s.usable(member) && suited(r, member) && s.withheld(r, member, need, pool.Amount{}).reason == "" {
			may[member.Registration.ID] = true
			hosts = append(hosts, s.hostFor(r, member, need))
		}
	}
	claim := pool.Claim{Study: r.id, Priority: r.study.Definition.Priority}
	for _, victim := range pool.Victims(claim.Priority, s.need(r, 1), hosts, now, preemptPause) {
		if s.leases.Ask(victim, claim, r.makingWay(victim.Owner), now) {
			s.options.Logger.Info("preempted", "trial", victim.Trial, "worker", victim.Worker, "for", r.study.Definition.Name)
		}
	}
	return may
}

// hostFor is the worker with what it runs, for a trial of the study that needs so much:
// a GPU that others make way on is idle then, and may be reserved for somebody. Beside
// others on a shared one it may run all the same. The pool's lock is held.
func (s *Service) hostFor(r *session, member pool.Member, need pool.Need) pool.Host {
	host := pool.Host{Member: member, Held: s.heldOf(member.Registration.ID)}
	if need.GPUShare == nil || len(s.rules.reservations) == 0 {
		return host
	}
	joins, share := need, *need.GPUShare
	share.Joins, joins.GPUShare = true, &share
	host.Allows = func(left []pool.Lease) bool {
		if room := pool.RoomOf(member, left); !room.Opens(need) || room.Fits(joins) {
			return true
		}
		then := s.holdings()
		then.FreeGPUs += len(pool.RoomOf(member, left).GPUs) - len(pool.RoomOf(member, host.Held).GPUs)
		asker := pool.Asker{Owner: r.owner, Study: r.id, Need: pool.Need{GPUs: 1}}
		return pool.KeepsGPUs(s.rules.reservations, then, asker, s.options.Now()) == ""
	}
	return host
}

// makingWay is why a trial of the owner makes way for the study, as the owner is
// told: the studies of other users are named to the administrators only.
func (r *session) makingWay(owner string) string {
	who := "study " + r.study.Definition.Name
	if owner != "" && owner != r.owner {
		who = "a study of another user"
	}
	return fmt.Sprintf("makes way for %s, whose priority is higher (%d)", who, r.study.Definition.Priority)
}

// preempted reports whether the trial was asked to make way under that lease.
func (s *Service) preempted(lease pool.Lease) bool {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	return s.leases.Asked(lease.Trial, lease.Epoch) != ""
}
