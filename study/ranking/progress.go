package ranking

import (
	"cmp"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/spending"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// Progress is how far a study has come, and what that is seen from.
type Progress struct {
	Study    journal.Study
	Trials   []trial.Trial
	Ladder   []budget.Rung
	Spending spending.Spending
	Use      Use
	Now      time.Time
}

// Show adds up the trials, and estimates the time left.
func (r Progress) Show() protocol.Progress {
	study, trials := r.Study, r.Trials
	p := protocol.Progress{
		Trials: make(map[trial.State]int), Created: len(trial.Searched(trials)), MaxTrials: study.Definition.Stop.Trials,
		ElapsedSeconds: study.ElapsedAt(r.Now).Seconds(), Best: BestOf(trials, study.Definition.Objectives),
	}
	if p.MaxTrials == definition.MaxTrials { // which is to say: no bound
		p.MaxTrials = 0
	}
	p.Repeats = len(trials) - p.Created
	for _, state := range trial.States() {
		p.Trials[state] = 0
	}
	for _, t := range trials {
		p.Trials[t.State]++
		if t.RetryOf != nil {
			p.Retried++
		}
		p.Epochs += t.Epochs
		p.DataPasses += spending.DataPasses(r.Ladder, t)
		p.TrialSeconds += float64(t.Seconds)
		p.Energy = p.Energy.Plus(t.Energy)
		p.Cost = p.Cost.Plus(t.Cost)
		p.Promotions += t.Promotions
		p.Resumes += t.Resumes
		p.Saved = p.Saved.Plus(t.Saved)
	}
	p.Disclosed = disclosed(study.Definition.Confidential, trials, p.Epochs)
	p.SystemUse, p.EpochsByPhase = r.Use.list()
	if study.Status == protocol.StudyRunning {
		p.RemainingSeconds = r.remaining(p)
	}
	return p
}

// disclosed is what so many epochs of the trials can have told; nil where no terms say it.
func disclosed(terms *definition.Confidential, trials []trial.Trial, epochs int) *protocol.Disclosed {
	if terms == nil {
		return nil
	}
	d := protocol.Disclosed{Bits: math.Ceil(terms.Bits() * float64(epochs))}
	for _, t := range trials {
		if t.Attesting() {
			d.Attesting++
		}
		if t.Attestation != nil {
			d.Released, d.Refused = d.Released+t.Attestation.Released, d.Refused+t.Attestation.Refused
		}
	}
	return &d
}

// remaining estimates the time left at the pace so far: what the plan has left,
// at least what is begun or not even started, and never more than the limits
// leave. Nil while nothing is known.
func (r Progress) remaining(p protocol.Progress) *float64 {
	study := r.Study
	if p.DataPasses == 0 {
		return nil
	}
	var left *float64
	took := r.took(p)
	if r.Ladder[0].Budget.Measured() {
		left = r.amountLeft(p, took)
	} else if planned := study.Definition.Plan().DataPasses; planned > 0 && study.Definition.Stop.Trials < definition.MaxTrials {
		done := r.passed()
		passes := max(planned-done, r.begun())
		estimate := passes / done * took
		left = &estimate
	}
	within := func(rest float64) {
		if rest = max(0, rest); left == nil || rest < *left {
			left = &rest
		}
	}
	if limit := study.Definition.Stop.Seconds; limit > 0 {
		within(limit - p.ElapsedSeconds)
	}
	for _, bound := range r.Spending.Limits(study.Definition.Stop) {
		if bound.Used > 0 {
			within((bound.Limit/bound.Used - 1) * took)
		}
	}
	return left
}

// took is how long what was reported took: the time that passed, less the part of the
// workers whose trials have not reported yet. They may be starting, which says nothing of
// the pace.
func (r Progress) took(p protocol.Progress) float64 {
	held, silent := 0.0, 0.0
	for _, t := range r.Trials {
		if t.State.Held() {
			if held++; t.Epochs == 0 && t.Started != nil {
				silent += min(r.Now.Sub(*t.Started).Seconds(), p.ElapsedSeconds)
			}
		}
	}
	return max(p.ElapsedSeconds-silent/max(1, held), p.ElapsedSeconds/(held+1))
}

// passed counts the data passes that the trials have behind them. Who reports only
// the last epoch of a budget has trained those before it as well: counted by
// reports, a study whose trials have all ended would have nine tenths before it.
func (r Progress) passed() float64 {
	passes := 0.0
	for _, t := range r.Trials {
		t.Epochs = max(t.Epochs, t.LastEpoch)
		passes += spending.DataPasses(r.Ladder, t)
	}
	return passes
}

// begun counts the data passes that are left in any case: the trials that wait
// or run have to reach their budget, and each that is not created yet takes at
// least the first rung's.
func (r Progress) begun() float64 {
	first := r.Ladder[0].Budget
	passes := float64(max(0, r.Study.Definition.Stop.Trials-len(trial.Searched(r.Trials)))*first.Epochs) * first.DataFraction
	for _, t := range r.Trials {
		if t.State == trial.Queued || t.State.Held() {
			passes += float64(max(0, t.Budget.Epochs-t.LastEpoch)) * t.Budget.DataFraction
		}
	}
	return passes
}

// amountLeft estimates the same where budgets are amounts of time or energy.
func (r Progress) amountLeft(p protocol.Progress, took float64) *float64 {
	plan := r.Study.Definition.Plan()
	planned, done := plan.Seconds, p.TrialSeconds
	if plan.Joules > 0 {
		planned, done = plan.Joules, float64(p.Energy.Joules)
	}
	if planned == 0 || done == 0 {
		return nil
	}
	left := max(0, planned-done) / done * took
	return &left
}

// Use adds up under which system configurations a study's epochs ran. It is kept
// up to date with the trials: adding up thousands of them takes too long for a
// page that asks every second.
type Use map[usedWith]trial.SystemUse

// usedWith is a configuration's key, and a phase.
type usedWith struct {
	configuration string
	phase         trial.Phase
}

// Replace takes out what a trial had and puts in what it has now.
func (u Use) Replace(before, now []trial.SystemUse) {
	if len(before) == len(now) && (len(now) == 0 || &before[0] == &now[0]) {
		return // the list is made anew whenever it changes
	}
	for _, one := range before {
		u.add(one, -1)
	}
	for _, one := range now {
		u.add(one, 1)
	}
}

func (u Use) add(one trial.SystemUse, sign int) {
	where := usedWith{system.Configuration(one.Configuration).Key(), one.Phase}
	sum, known := u[where]
	if !known {
		sum = trial.SystemUse{Configuration: one.Configuration, Phase: one.Phase}
	}
	one.Epochs *= sign
	one.Seconds *= trial.Float(sign)
	one.Joules *= trial.Float(sign)
	if one.Saved != nil {
		one.Saved = one.Saved.Times(trial.Float(sign))
	}
	if sum = sum.Plus(one); sum.Epochs == 0 {
		delete(u, where)
		return
	}
	u[where] = sum
}

// list has those with the most epochs first, and counts the epochs of each phase.
// Both are nil where nothing was tuned.
func (u Use) list() ([]trial.SystemUse, map[trial.Phase]int) {
	if len(u) == 0 {
		return nil, nil
	}
	var places []usedWith
	phases := make(map[trial.Phase]int)
	for where, one := range u {
		places = append(places, where)
		if where.phase != "" {
			phases[where.phase] += one.Epochs
		}
	}
	slices.SortFunc(places, func(a, b usedWith) int {
		return cmp.Or(cmp.Compare(u[b].Epochs, u[a].Epochs), cmp.Compare(a.configuration, b.configuration), cmp.Compare(a.phase, b.phase))
	})
	var sorted []trial.SystemUse
	for _, where := range places {
		sorted = append(sorted, u[where])
	}
	return sorted, phases
}
