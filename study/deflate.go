package study

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
	"github.com/tandem-tune/tandem/workers/deflate"
	"github.com/tandem-tune/tandem/workers/pool"
)

// deflateAll chooses anew what trials of low priority leave out, and which of them
// sprint for those that wait, if that is due.
func (s *Service) deflateAll(now time.Time) {
	if !s.approximation.Due(now) {
		return
	}
	contenders := s.contenders(now)
	s.poolMutex.Lock()
	leases := s.leases.All()
	s.poolMutex.Unlock()
	s.approximation.Choose(contenders, leases, *s.sprintAccounts(now), s.awaited(), now)
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
				one.Limits = deflate.Limits{Mean: limits.Mean, Tail: limits.Tail}
				if !r.able.IsZero() && r.wanting() && len(s.fullFor(r)) > 0 {
					one.Waits = max(0, now.Sub(r.able).Seconds())
				}
			}
			if def.Approximation != nil {
				one.Curve, one.Unknown = deflate.Learn(r.pairs())
			}
			list, of[one.ID], limited = append(list, one), r, limited || def.ResponseSeconds != nil
		} else if r.study.Status != protocol.StudyRunning {
			s.approximation.Paused(r.study.ID)
		}
		r.mutex.Unlock()
	}
	for i := range list {
		if limited && (list[i].Accepts != nil || list[i].Limits != deflate.Limits{}) {
			list[i].Workers = s.workersFor(of[list[i].ID])
		}
	}
	slices.SortFunc(list, func(a, b approximation.Study) int {
		return cmp.Or(cmp.Compare(b.Priority, a.Priority), cmp.Compare(a.ID, b.ID))
	})
	return list
}

// pairs are what configurations came to at the two highest rungs that enough of
// them have results of.
func (r *session) pairs() []deflate.Pair {
	sign := 1.0
	if r.study.Definition.Objectives[0].Direction == definition.Minimize {
		sign = -1
	}
	for top := len(r.ladder) - 1; top > 0; top-- {
		var pairs []deflate.Pair
		for _, t := range trial.Searched(r.trials) {
			low, high := resultAt(t, top-1), resultAt(t, top)
			if low == nil || high == nil || !low.Values[0].IsFinite() || !high.Values[0].IsFinite() || passes(high.Budget) <= passes(low.Budget) {
				continue
			}
			pairs = append(pairs, deflate.Pair{Less: passes(low.Budget), More: passes(high.Budget), Low: sign * float64(low.Values[0]), High: sign * float64(high.Values[0])})
		}
		if _, err := deflate.Learn(pairs); err == nil {
			return pairs
		}
	}
	return nil
}

// passes is how much data a budget is, in passes over all of it.
func passes(b budget.Budget) float64 { return float64(b.Epochs) * b.DataFraction }

// resultAt is the trial's result at the rung, or nil.
func resultAt(t trial.Trial, rung int) *trial.Result {
	for i := range t.Results {
		if t.Results[i].Rung == rung {
			return &t.Results[i]
		}
	}
	return nil
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

// leaveOut gives a training at the rung its budget, without what the study
// leaves out now. Repeats leave nothing out: they tell how good the best are.
func (tx *transaction) leaveOut(t trial.Trial, rung int) trial.Trial {
	t.Rung, t.Budget, t.Deflation = rung, tx.session.ladder[rung].Budget, nil
	if tx.deflation.Drop > 0 && t.RepeatOf == nil {
		t.Budget = t.Budget.Deflated(tx.deflation.Drop)
		t.Deflation = &trial.Deflation{Drop: tx.deflation.Drop, Loss: tx.deflation.Loss, Why: tx.deflation.Why}
	}
	return t
}

// withAll are a result's values as the search compares them: the first one as it
// is taken to have come out with all data: an estimate, never more than the loss
// its user accepts, where one is given.
func (r *session) withAll(result trial.Result) []trial.Float {
	if result.Deflation == nil || result.Deflation.Loss == nil {
		return result.Values
	}
	values, loss := slices.Clone(result.Values), trial.Float(*result.Deflation.Loss)
	if r.study.Definition.Objectives[0].Direction == definition.Minimize {
		loss = -loss
	}
	values[0] += loss
	return values
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
