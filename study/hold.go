package study

import (
	"slices"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
)

// heldTrials are the queued trials of the study that are held for workers. The study's
// lock is held.
func (s *Service) heldTrials(r *session) allocator.Held {
	return s.allocator.Placements.Held(r.id, r.queue)
}

// hold holds a trial that is given back for the worker that it migrates to. It is seen
// in the queue before that is durable, so it is held before, too.
func (s *Service) hold(tx *transaction) {
	if tx.held && s.allocator.Hold(tx.migration, tx.now) {
		tx.undo = append(tx.undo, func() { s.allocator.ReleaseHold(tx.migration.Trial) })
	}
}

// isQueued reports whether the trial waits.
func (s *Service) isQueued(id trial.ID) bool {
	study, number := studyOf(id)
	r := s.inMemory(study)
	if r == nil {
		return false
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return slices.Contains(r.queue, number)
}

// expectedFirst puts studies with a trial that is kept for the worker before all of
// their priority or a lower one: it has left another place for this one.
func expectedFirst(list []choice, candidates []pool.Candidate, expected []string) []choice {
	if len(expected) == 0 {
		return list
	}
	priority := make(map[string]int, len(candidates))
	for _, one := range candidates {
		priority[one.Study] = one.Priority
	}
	for _, study := range slices.Backward(expected) {
		at := slices.IndexFunc(list, func(one choice) bool { return one.study == study })
		if at < 0 {
			continue
		}
		one := list[at]
		one.better, one.machine = "", ""
		list = slices.Delete(list, at, at+1)
		before := slices.IndexFunc(list, func(other choice) bool { return priority[other.study] <= priority[study] })
		if before < 0 {
			before = len(list)
		}
		list = slices.Insert(list, before, one)
	}
	return list
}
