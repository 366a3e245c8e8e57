package approximation

import (
	"fmt"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// sign is 1 where larger values of the first objective are better, and -1 otherwise.
func sign(def definition.Definition) float64 {
	if def.Objectives[0].Direction == definition.Minimize {
		return -1
	}
	return 1
}

// CurveOf is what leaving data out costs a study: the curve of what configurations came
// to at the two highest of so many rungs that enough of them have results of. The error
// says why there is none.
func CurveOf(def definition.Definition, trials []trial.Trial, rungs int) (Curve, error) {
	for top := rungs - 1; top > 0; top-- {
		var pairs []Pair
		for _, t := range trial.Searched(trials) {
			low, high := resultAt(t, top-1), resultAt(t, top)
			if low == nil || high == nil || !low.Values[0].IsFinite() || !high.Values[0].IsFinite() || passes(high.Budget) <= passes(low.Budget) {
				continue
			}
			pairs = append(pairs, Pair{Less: passes(low.Budget), More: passes(high.Budget), Low: sign(def) * float64(low.Values[0]), High: sign(def) * float64(high.Values[0])})
		}
		if curve, err := FitCurve(pairs); err == nil {
			return curve, nil
		}
	}
	return FitCurve(nil)
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

// LeaveOut is the trial with its budget of a rung, without what the study leaves out.
// Repeats leave nothing out: they show how good the best are.
func (d Choice) LeaveOut(t trial.Trial, of budget.Budget) trial.Trial {
	t.Budget, t.Deflation = of, nil
	if d.Drop > 0 && t.RepeatOf == nil {
		t.Budget = t.Budget.Deflated(d.Drop)
		t.Deflation = &trial.Deflation{Drop: d.Drop, Loss: d.Loss, Why: d.Why}
	}
	return t
}

// Corrected are a result's values as the search compares them: the first one as it
// would be with all data. That is an estimate; it adds at most the loss that the study
// accepts.
func Corrected(def definition.Definition, result trial.Result) []trial.Float {
	if result.Deflation == nil || result.Deflation.Loss == nil {
		return result.Values
	}
	values := slices.Clone(result.Values)
	values[0] += trial.Float(sign(def) * *result.Deflation.Loss)
	return values
}

// LeftOutAt is the share of a rung's data that the trial left out when it was
// measured there.
func LeftOutAt(t trial.Trial, rung int) float64 {
	if result := resultAt(t, rung); result != nil && result.Deflation != nil {
		return result.Deflation.Drop
	}
	return 0
}

// leftOut reports whether the trial has left out data of any rung.
func leftOut(t trial.Trial) bool {
	return t.Deflation != nil && t.Deflation.Drop > 0 || slices.ContainsFunc(t.Results, func(result trial.Result) bool {
		return result.Deflation != nil && result.Deflation.Drop > 0
	})
}

// Outcome is what became of the trials of a study that left data out.
type Outcome struct {
	Definition definition.Definition
	Trials     []trial.Trial
	Rungs      int
	// Repeats are the values of a trial's repeats in the first objective.
	Repeats func(number int) []float64
}

// lost is how much worse trials came out that left something out than their
// repeats, which do not, in the mean over so many of them.
func (o Outcome) lost() (mean float64, trials int) {
	for _, t := range trial.Searched(o.Trials) {
		result := resultAt(t, o.Rungs-1)
		if result == nil || result.Deflation == nil || !result.Values[0].IsFinite() {
			continue
		}
		sum, repeats := 0.0, 0
		for _, value := range o.Repeats(t.Number) {
			if trial.Float(value).IsFinite() {
				sum += value
				repeats++
			}
		}
		if repeats > 0 {
			mean += sign(o.Definition) * (sum/float64(repeats) - float64(result.Values[0]))
			trials++
		}
	}
	if trials > 0 {
		mean /= float64(trials)
	}
	return mean, trials
}

// Notes say that the winner was trained on less than its rung's data, and what to do
// about it.
func (o Outcome) Notes(best *protocol.Best) []string {
	result := resultAt(o.Trials[best.Number], best.Rung)
	if result == nil || result.Deflation == nil {
		return nil
	}
	d, cost := result.Deflation, "what that cost is not known"
	if d.Loss != nil {
		cost = fmt.Sprintf("that cost about %.2g of %s, an estimate", *d.Loss, best.Metric)
	}
	if lost, of := o.lost(); of > 0 {
		cost += fmt.Sprintf("; trials that were repeated with all data lost %.2g", lost)
	}
	note := fmt.Sprintf("it was trained on %.3g%% less data than its rung has, so that studies of a higher priority waited less: %s", 100*d.Drop, cost)
	if repeats := o.Definition.Search.Repeats; repeats == nil {
		note += "; train it again on all data before it is used: search.repeats does so in the study, as repeats leave nothing out"
	} else if best.Repeated == nil || best.Repeated.Results < 2 {
		note += "; its repeats will be trained on all data"
	}
	return []string{note}
}

// Report is what trials of a study leave out for others of a higher priority, and what
// comes of it.
func (d *Controller) Report(study string, running bool, of Outcome, now time.Time) protocol.StudyDeflation {
	def := of.Definition
	answer := protocol.StudyDeflation{
		Study: def.Name, Priority: def.Priority, Accepts: def.Approximation, Limits: def.ResponseSeconds,
		Why: "nothing is left out: the study has no approximation",
	}
	if def.Approximation != nil {
		answer.Why = "nothing is left out: the study is not running, or has run for less than " + Every.String()
	}
	if held, known := d.Of(study); known && running {
		answer.Drop, answer.Most, answer.Why, answer.Loss, answer.LossBound = held.Drop, held.Most, held.Why, held.Loss, held.Bound
		answer.Chosen, answer.LimitsWhy = &held.Chosen, held.LimitsWhy
		answer.SprintAfter, answer.SprintWhy = held.Sprint, held.SprintWhy
		if held.Speed > 0 {
			answer.SprintSpeed = &held.Speed
		}
		answer.Met = held.Met.report()
	}
	if answer.Met == nil {
		answer.Met = d.Responses(study, now.Add(-time.Hour)).report()
	}
	for _, t := range of.Trials {
		if leftOut(t) {
			answer.Deflated++
		}
	}
	if def.Sprint != nil && def.Sprint.Auto && answer.SprintWhy == "" {
		answer.SprintWhy = "trials do not sprint: the study is not running, or has run for less than " + Every.String()
	}
	if lost, trials := of.lost(); trials > 0 {
		answer.LossMeasured, answer.LossTrials = &lost, trials
	}
	return answer
}

// report is what was met, as it is shown; nil where nothing was.
func (m Met) report() *protocol.ResponseTimes {
	if m.Runs == 0 {
		return nil
	}
	return &protocol.ResponseTimes{Mean: m.Mean, Tail: m.Tail, Trials: m.Runs}
}
