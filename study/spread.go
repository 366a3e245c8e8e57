package study

import (
	"github.com/tandem-tune/tandem/workers/pool"
)

// level is by how much the loads of two workers may differ and count as the same: sums
// of fractions are rounded.
const level = 1e-9

// yields reports whether the worker leaves a trial of the study to another one that
// waits as well, on a machine of the same type, has room for it, and carries less: the
// same trial would run beside fewer there. That one is called. A worker that nobody
// stands beside yields to nobody, nor does one for longer than its patience. Trials
// that share GPUs are to be packed; one that is kept for the worker, or for which that
// was cleared, runs there. The study's lock and the pool's are held.
func (s *Service) yields(r *session, asking pool.Member, room pool.Room) bool {
	worker, load := asking.Registration.ID, room.Load()
	w, waits := s.line.waiting[worker]
	if !waits || load <= level || len(s.line.waiting) == 1 || r.study.Definition.SharesGPUs() || s.lockedKept(r, worker) != (pool.Amount{}) {
		return false
	}
	if gang, some := s.gangs.Waiting(r.id); some && gang.Worker == worker {
		return false
	}
	needs := s.needs(r)
	for id, other := range s.line.waiting {
		member, known := s.workers.Member(id)
		if id == worker || !known || other.machine != w.machine || !other.caller.sees(r.id, r.owner) || !suited(r, member) {
			continue
		}
		here := pool.RoomOf(member, s.heldOf(id))
		need := needs(here.Machine)
		if here.Load() < load-level && here.Trials < here.Slots && here.Fits(need) && s.withheld(r, member, need, pool.Amount{}).reason == "" {
			return s.lockedPassOver(worker, r.id, id)
		}
	}
	return false
}
