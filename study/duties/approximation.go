package duties

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// Approximation has trials of low priority leave out data, or sprint, for others.
type Approximation struct{ On }

// Do chooses anew what trials of low priority leave out, and which of them
// sprint for those that wait, if that is due.
func (s Approximation) Do(now time.Time) {
	if !s.On.Approximation.Due(now) {
		return
	}
	contenders := s.contenders(now)
	s.On.Approximation.Choose(contenders, s.Allocator.Leases(), s.Allocator.Sprints(), s.sprintTriggers(), now)
}

// contenders are the studies that workers may train for at the moment, those of the
// highest priority first.
func (s Approximation) contenders(now time.Time) []approximation.Study {
	var list []approximation.Study
	of, limited := map[string]*session.Session{}, false
	for r := range s.Sessions.Each() {
		if def := r.Study.Definition; r.Study.Status == protocol.StudyRunning && len(def.Command) > 0 && !r.Stale && r.Broken == nil {
			one := approximation.Study{ID: r.Study.ID, Priority: def.Priority, Accepts: def.Approximation, Sprint: def.Sprint}
			if limits := def.ResponseSeconds; limits != nil {
				one.Limits = approximation.Limits{Mean: limits.Mean, Tail: limits.Tail}
				if !r.Able().IsZero() && r.Wanting() && len(s.Allocator.Full(r.Ask(nil))) > 0 {
					one.Waits = max(0, now.Sub(r.Able()).Seconds())
				}
			}
			if def.Approximation != nil {
				one.Curve, one.Unknown = approximation.CurveOf(def, r.Trials, len(r.Ladder))
			}
			list, of[one.ID], limited = append(list, one), r, limited || def.ResponseSeconds != nil
		} else if r.Study.Status != protocol.StudyRunning {
			s.On.Approximation.Paused(r.Study.ID)
		}
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

// workersFor are the workers that the study's trials could be on, were nothing there.
func (s Approximation) workersFor(r *session.Session) map[string]bool {
	r.Lock()
	defer r.Unlock()
	found, ask := map[string]bool{}, r.Ask(nil)
	for _, one := range s.Allocator.Snapshot().Workers {
		if one.Alive && one.Drain == nil && ask.Fits(one.Member) {
			found[one.Registration.ID] = true
		}
	}
	return found
}

// sprintTriggers are the workers that trials wait for of studies which have those of a
// lower priority sprint meanwhile (sprint.while_waiting), each with the highest
// priority of these studies.
func (s Approximation) sprintTriggers() map[string]int {
	awaited := map[string]int{}
	for r := range s.Sessions.Each() {
		if sprint := r.Study.Definition.Sprint; sprint != nil && sprint.WhileWaiting && r.Wanting() {
			priority := r.Study.Definition.Priority
			for _, worker := range s.Allocator.Full(r.Ask(nil)) {
				if above, known := awaited[worker]; !known || above < priority {
					awaited[worker] = priority
				}
			}
		}
	}
	return awaited
}

// Save stores what was learned since it was last done, if that is due.
func (s Approximation) Save(ctx context.Context, now time.Time, closing bool) error {
	entries := s.On.Approximation.Entries(now, closing)
	if len(entries) == 0 {
		return nil
	}
	if err := s.Store.Apply(ctx, journal.Change{Pool: entries}); err != nil {
		s.On.Approximation.Again(entries)
		return fmt.Errorf("store how long trainings take: %w", err)
	}
	return nil
}
