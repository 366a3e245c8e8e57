package study

import (
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Census counts what the server has to do at one moment.
type Census struct {
	// Studies counts those that are not over, by status.
	Studies map[protocol.StudyStatus]int
	// Ended counts those that have ended since the service was started, by how they did.
	Ended map[protocol.StudyStatus]int
	// Trials counts the trials of those that are not over, by state; every state is present.
	Trials map[trial.State]int
	// Alive counts the workers that were heard of within the term of a lease,
	// Silent the others that are still remembered. Slots is how many trials the
	// living ones offer to run at once, Leases how many trials are out.
	Alive, Silent, Slots, Leases int
}

// Census counts what is in memory: it asks the store for nothing, so that it
// can be taken often.
func (s *Service) Census() Census {
	census := Census{
		Studies: map[protocol.StudyStatus]int{protocol.StudyRunning: 0, protocol.StudyPaused: 0},
		Ended:   make(map[protocol.StudyStatus]int),
		Trials:  make(map[trial.State]int),
	}
	s.mutex.Lock()
	for _, status := range []protocol.StudyStatus{protocol.StudyCompleted, protocol.StudyStopped, protocol.StudyFailed} {
		census.Ended[status] = s.ended[status]
	}
	s.mutex.Unlock()
	for _, state := range trial.States() {
		census.Trials[state] = 0
	}
	for r := range s.each() {
		if !r.study.Status.Over() {
			census.Studies[r.study.Status]++
			for _, t := range r.trials {
				census.Trials[t.State]++
			}
		}
	}
	census.Leases = len(s.allocator.Leases())
	for _, worker := range s.allocator.Snapshot().Workers {
		if !worker.Alive {
			census.Silent++
			continue
		}
		census.Alive++
		census.Slots += worker.Registration.Slots
	}
	return census
}
