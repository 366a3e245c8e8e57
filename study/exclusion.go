package study

import (
	"context"
	"encoding/json"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/pool"
)

// judged puts into force what a transaction decided of workers, which is durable now.
func (s *Service) judged(tx *transaction) {
	if len(tx.start.exclude)+len(tx.start.readmit) == 0 {
		return
	}
	s.poolMutex.Lock()
	for _, one := range tx.start.readmit {
		s.workers.Readmit(one.Study, one.Worker)
	}
	for _, one := range tx.start.exclude {
		s.workers.Exclude(one)
	}
	s.poolMutex.Unlock()
	for _, one := range tx.start.exclude {
		s.options.Logger.Warn("worker excluded from a study", "worker", one.Name, "study", tx.session.study.Definition.Name, "until", one.Until, "reason", one.Reason)
	}
	s.notify()
}

// exclusionEntry is the kind of what is stored of exclusions.
const exclusionEntry = "exclusion"

// exclusionName names an exclusion in the store.
func exclusionName(one pool.Exclusion) string {
	name, _ := json.Marshal([]string{one.Study, one.Worker})
	return string(name)
}

// loadExclusions reads the exclusions that are stored.
func (s *Service) loadExclusions(ctx context.Context) error {
	return eachEntry(ctx, s.store, exclusionEntry, func(_ string, one pool.Exclusion) {
		s.poolMutex.Lock()
		defer s.poolMutex.Unlock()
		s.workers.Exclude(one)
	})
}

// pastExclusions are the entries to remove of exclusions that ended so long ago that
// nothing follows from them any more. The pool's lock is held.
func (s *Service) pastExclusions(now time.Time) (past []PoolEntry) {
	for _, one := range s.workers.Exclusions("") {
		if now.Sub(one.Until) >= longestExclusion {
			past = append(past, PoolEntry{Kind: exclusionEntry, Name: exclusionName(one)})
		}
	}
	return past
}

// forgetExclusion forgets the exclusion with that name in the store. The pool's lock is
// held.
func (s *Service) forgetExclusion(name string) {
	var of [2]string
	if json.Unmarshal([]byte(name), &of) == nil {
		s.workers.Readmit(of[0], of[1])
	}
}

// shownExclusion is the exclusion as workers and people are told.
func shownExclusion(one pool.Exclusion) protocol.Exclusion {
	return protocol.Exclusion{Reason: one.Reason, Since: one.Since, Until: one.Until}
}

// shownExclusions are those of a worker by study; nil for none.
func shownExclusions(member pool.Member) map[string]protocol.Exclusion {
	var shown map[string]protocol.Exclusion
	for study, one := range member.Excluded {
		if shown == nil {
			shown = make(map[string]protocol.Exclusion)
		}
		shown[study] = shownExclusion(one)
	}
	return shown
}
