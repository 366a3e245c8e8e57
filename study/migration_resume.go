package study

import (
	"time"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// resumeMigrations goes on with the migrations that were under way when the server
// stopped.
func (s *Service) resumeMigrations() {
	now := s.options.Now()
	for _, stored := range s.allocator.Stored() {
		var partner allocator.Whereabouts
		if stored.Partner != nil {
			partner = s.whereabouts(stored.Partner.Trial, stored.Partner.Lease, now)
		}
		s.allocator.Resume(stored, s.whereabouts(stored.Trial, stored.Lease, now), partner)
	}
}

// whereabouts is where a trial is that had the lease when it was told to migrate.
func (s *Service) whereabouts(id trial.ID, lease trial.LeaseEpoch, now time.Time) allocator.Whereabouts {
	study, number := studyOf(id)
	r := s.inMemory(study)
	if r == nil {
		return allocator.Whereabouts{}
	}
	r.mutex.Lock()
	defer r.mutex.Unlock()
	if number >= len(r.trials) || r.trials[number].LeaseEpoch != lease {
		return allocator.Whereabouts{}
	}
	t := r.trials[number]
	return allocator.Whereabouts{Runs: t.State.Held(), Left: t.State == trial.Queued, Lease: r.leaseRecord(t, r.takes(t, 0, 0), now)}
}
