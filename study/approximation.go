package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/pool"
)

// approximate chooses anew what trials of low priority leave out, and which of them
// sprint for those that wait, if that is due.
func (s *Service) approximate(now time.Time) {
	if !s.approximation.Due(now) {
		return
	}
	contenders := s.contenders(now)
	s.poolMutex.Lock()
	leases := s.leases.All()
	s.poolMutex.Unlock()
	s.approximation.Choose(contenders, leases, *s.sprintAccounts(now), s.sprintTriggers(), now)
}

// contenders are the studies that workers may train for at the moment, those of the
// highest priority first.
func (s *Service) contenders(now time.Time) []approximation.Study {
	var list []approximation.Study
	of, limited := map[string]*session{}, false
	for _, r := range s.loaded() {
		r.mutex.Lock()
		if def := r.study.Definition; r.study.Status == protocol.StudyRunning && len(def.Command) > 0 && !r.stale && r.broken == nil {
			one := approximation.Study{ID: r.study.ID, Priority: def.Priority, Accepts: def.Approximation, Sprint: def.Sprint}
			if limits := def.ResponseSeconds; limits != nil {
				one.Limits = approximation.Limits{Mean: limits.Mean, Tail: limits.Tail}
				if !r.able.IsZero() && r.wanting() && len(s.fullFor(r)) > 0 {
					one.Waits = max(0, now.Sub(r.able).Seconds())
				}
			}
			if def.Approximation != nil {
				one.Curve, one.Unknown = approximation.CurveOf(def, r.trials, len(r.ladder))
			}
			list, of[one.ID], limited = append(list, one), r, limited || def.ResponseSeconds != nil
		} else if r.study.Status != protocol.StudyRunning {
			s.approximation.Paused(r.study.ID)
		}
		r.mutex.Unlock()
	}
	for i := range list {
		if limited && (list[i].Accepts != nil || list[i].Limits != approximation.Limits{}) {
			list[i].Workers = s.workersFor(of[list[i].ID])
		}
	}
	slices.SortFunc(list, func(a, b approximation.Study) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// workerSlots is how many trials the workers that are heard of run at once.
func (s *Service) workerSlots(now time.Time) int {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	slots := 0
	for _, member := range s.workers.Members() {
		switch {
		case now.Sub(member.LastSeen) >= s.leaseTerm():
		case member.Registration.Elastic: // as many as there was room for
			slots += max(1, len(s.leases.HeldBy(member.Registration.ID)))
		default:
			slots += max(1, member.Registration.Slots)
		}
	}
	return max(1, slots)
}

// workersFor are the workers that the study's trials could be on, were nothing there.
func (s *Service) workersFor(r *session) map[string]bool {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	found, needs := map[string]bool{}, s.needs(r)
	for _, member := range s.workers.Members() {
		if s.usable(member) && suited(r, member) && pool.RoomOf(member, nil).Fits(needs(max(1, member.Registration.Machine.Cores))) {
			found[member.Registration.ID] = true
		}
	}
	return found
}

// sprintTriggers are the workers that trials wait for of studies which have those of a
// lower priority sprint meanwhile (sprint.while_waiting), each with the highest
// priority of these studies.
func (s *Service) sprintTriggers() map[string]int {
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

// sprinting are the worker's trials of a lower priority than one that waits for it.
func (s *Service) sprinting(worker string) (trials []trial.ID) {
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

// loadResponses reads what was learned before the server was started.
func (s *Service) loadResponses(ctx context.Context) error {
	known := map[string]approximation.Record{}
	if err := eachEntry(ctx, s.store, approximation.ResponsesEntry, func(study string, one approximation.Record) { known[study] = one }); err != nil {
		return err
	}
	outdated, err := s.store.PoolEntries(ctx, approximation.HistoryEntry)
	if err != nil {
		return fmt.Errorf("load what is kept of the pool: %w", err)
	}
	s.approximation.Load(known, outdated)
	return nil
}

// keepResponses stores what was learned since it was last done, if that is due.
func (s *Service) keepResponses(ctx context.Context, now time.Time, closing bool) error {
	entries := s.approximation.Entries(now, closing)
	if len(entries) == 0 {
		return nil
	}
	if err := s.store.Apply(ctx, Change{Pool: entries}); err != nil {
		s.approximation.Again(entries)
		return fmt.Errorf("store how long trainings take: %w", err)
	}
	return nil
}

// Deflation says what trials of the study leave out for others of a higher
// priority, and what comes of it.
func (s *Service) Deflation(ctx context.Context, ref string) (protocol.StudyDeflation, error) {
	return look(ctx, s, ref, func(r *session) (protocol.StudyDeflation, error) {
		now := s.options.Now()
		answer := s.approximation.Report(r.study.ID, r.study.Status == protocol.StudyRunning, r.approximated(), now)
		answer.Slots = s.workerSlots(now)
		if r.study.Definition.Sprint != nil {
			answer.Sprint = s.sprintAccounts(now)
		}
		return answer, nil
	})
}

// approximated is what became of the study's trials that left data out.
func (r *session) approximated() approximation.Outcome {
	return approximation.Outcome{Definition: r.study.Definition, Trials: r.trials, Rungs: len(r.ladder), Repeats: r.repeatsAlone}
}

// sprintAccounts is what is left for sprints on all workers that are heard of.
func (s *Service) sprintAccounts(now time.Time) *protocol.SprintAccount {
	s.poolMutex.Lock()
	defer s.poolMutex.Unlock()
	sum := protocol.SprintAccount{}
	for _, member := range s.workers.Members() {
		if account := member.Sprint; account != nil && now.Sub(member.LastSeen) < s.leaseTerm() {
			sum.Joules, sum.Of, sum.Watts = sum.Joules+account.Joules, sum.Of+account.Of, sum.Watts+account.Watts
			sum.ExtraWatts = max(sum.ExtraWatts, account.ExtraWatts) // of one trial, at most
		}
	}
	return &sum
}
