package study

import (
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/pool"
)

// awaited are the workers that trials wait for of studies which have those of a
// lower priority sprint meanwhile (sprint.while_waiting), each with the highest
// priority of these studies.
func (s *Service) awaited() map[string]int {
	awaited := map[string]int{}
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if sprint := r.study.Definition.Sprint; sprint != nil && sprint.WhileWaiting && r.wanting() {
			priority := r.study.Definition.Priority
			for _, worker := range s.fullFor(r) {
				if above, known := awaited[worker]; !known || above < priority {
					awaited[worker] = priority
				}
			}
		}
		r.mutex.Unlock()
	}
	return awaited
}

// fullFor are the workers that the study's next trial could be on, were it not for
// those that they have. The study's lock is held.
func (s *Service) fullFor(r *session) (workers []string) {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	if s.overQuota(r, s.need(r, 1), pool.Amount{}).reason != "" {
		return nil
	}
	needs := s.needs(r)
	for _, member := range s.workers.Members() {
		need := needs(max(1, member.Registration.Machine.Cores))
		if !s.usable(member) || !suited(r, member) || !pool.RoomOf(member, nil).Fits(need) || s.withheld(r, member, need, pool.Amount{}).reason != "" {
			continue
		}
		if room := pool.RoomOf(member, s.heldOf(member.Registration.ID)); room.Trials >= room.Slots || !room.Fits(need) {
			workers = append(workers, member.Registration.ID)
		}
	}
	return workers
}

// hurried are the worker's trials of a lower priority than one that waits for it.
func (s *Service) hurried(worker string) (trials []trial.ID) {
	above, awaited := s.approximation.AwaitedOn(worker)
	if !awaited {
		return nil
	}
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	for _, lease := range s.leases.Of(worker) {
		if lease.Priority < above {
			trials = append(trials, lease.Trial)
		}
	}
	return trials
}
