package study

import (
	"context"
	"fmt"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/approximation"
)

// Deflation says what trials of the study leave out for others of a higher
// priority, and what comes of it.
func (s *Service) Deflation(ctx context.Context, ref string) (protocol.StudyDeflation, error) {
	return look(ctx, s, ref, func(r *session) (protocol.StudyDeflation, error) {
		def, now := r.study.Definition, s.options.Now()
		answer := protocol.StudyDeflation{
			Study: def.Name, Priority: def.Priority, Accepts: def.Approximation, Limits: def.ResponseSeconds,
			Why: "nothing is left out: the study has no approximation", Slots: s.workerSlots(now),
		}
		if def.Approximation != nil {
			answer.Why = "nothing is left out: the study is not running, or has run for less than " + approximation.Every.String()
		}
		if held, known := s.approximation.Of(r.study.ID); known && r.study.Status == protocol.StudyRunning {
			answer.Drop, answer.Most, answer.Why, answer.Loss, answer.LossBound = held.Drop, held.Most, held.Why, held.Loss, held.Bound
			answer.Chosen, answer.LimitsWhy = &held.Chosen, held.LimitsWhy
			answer.SprintAfter, answer.SprintWhy = held.Sprint, held.SprintWhy
			if held.Speed > 0 {
				answer.SprintSpeed = &held.Speed
			}
			if met := held.Met; met.Runs > 0 {
				answer.Met = &protocol.ResponseTimes{Mean: met.Mean, Tail: met.Tail, Trials: met.Runs}
			}
		}
		if met := s.approximation.Responses(r.study.ID, now.Add(-time.Hour)); answer.Met == nil && met.Runs > 0 {
			answer.Met = &protocol.ResponseTimes{Mean: met.Mean, Tail: met.Tail, Trials: met.Runs}
		}
		for _, t := range r.trials {
			if leftOut(t) > 0 {
				answer.Deflated++
			}
		}
		if def.Sprint != nil && def.Sprint.Auto && answer.SprintWhy == "" {
			answer.SprintWhy = "trials do not sprint: the study is not running, or has run for less than " + approximation.Every.String()
		}
		if def.Sprint != nil {
			answer.Sprint = s.sprintAccounts(now)
		}
		if lost, of := r.lost(); of > 0 {
			answer.LossMeasured, answer.LossTrials = &lost, of
		}
		return answer, nil
	})
}

// leftOutAt is the share of a rung's data that the trial left out when it was
// measured there.
func leftOutAt(t trial.Trial, rung int) float64 {
	if result := resultAt(t, rung); result != nil && result.Deflation != nil {
		return result.Deflation.Drop
	}
	return 0
}

// leftOut is the largest share of a rung's data that the trial has left out.
func leftOut(t trial.Trial) float64 {
	most := 0.0
	if t.Deflation != nil {
		most = t.Deflation.Drop
	}
	for _, result := range t.Results {
		if result.Deflation != nil {
			most = max(most, result.Deflation.Drop)
		}
	}
	return most
}

// lost is how much worse trials came out that left something out than their
// repeats, which do not, in the mean over so many of them.
func (r *session) lost() (mean float64, trials int) {
	sign := 1.0
	if r.study.Definition.Objectives[0].Direction == definition.Minimize {
		sign = -1
	}
	for _, t := range trial.Searched(r.trials) {
		result := resultAt(t, len(r.ladder)-1)
		if result == nil || result.Deflation == nil || !result.Values[0].IsFinite() {
			continue
		}
		sum, repeats := 0.0, 0
		for _, value := range r.repeatsAlone(t.Number) {
			if trial.Float(value).IsFinite() {
				sum += value
				repeats++
			}
		}
		if repeats > 0 {
			mean += sign * (sum/float64(repeats) - float64(result.Values[0]))
			trials++
		}
	}
	if trials > 0 {
		mean /= float64(trials)
	}
	return mean, trials
}

// deflationNotes say that the winner was trained on less than its rung's data,
// and what to do about it.
func (r *session) deflationNotes(best *protocol.Best) []string {
	result := resultAt(r.trials[best.Number], best.Rung)
	if result == nil || result.Deflation == nil {
		return nil
	}
	d, cost := result.Deflation, "what that cost is not known"
	if d.Loss != nil {
		cost = fmt.Sprintf("that cost about %.2g of %s, an estimate", *d.Loss, best.Metric)
	}
	if lost, of := r.lost(); of > 0 {
		cost += fmt.Sprintf("; trials that were repeated with all data lost %.2g", lost)
	}
	note := fmt.Sprintf("it was trained on %.3g%% less data than its rung has, so that studies of a higher priority waited less: %s", 100*d.Drop, cost)
	if repeats := r.study.Definition.Search.Repeats; repeats == nil {
		note += "; train it again on all data before it is used: search.repeats does so in the study, as repeats leave nothing out"
	} else if best.Repeated == nil || best.Repeated.Results < 2 {
		note += "; its repeats will be trained on all data"
	}
	return []string{note}
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
