package spending

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Point is how far a study is when it is extended.
type Point struct {
	// Trials were created or wait in its queue, Seconds it was running.
	Trials  int
	Seconds float64
	// Over says that it has ended: what it is given counts from what it has used then.
	// Else it counts from its limits.
	Over bool
}

// Extended returns the limits of a study that is given more. The error is invalid and
// names every fault of the request, or a conflict where another limit is reached.
func (s Spending) Extended(stop definition.Stop, more protocol.ExtendRequest, at Point) (definition.Stop, error) {
	trials := float64(stop.Trials % definition.MaxTrials) // which is no bound
	type limit struct {
		name, unit string
		more, used float64
		limit      *float64
	}
	limits := []limit{
		{"trials", "trials", float64(more.Trials), float64(at.Trials), &trials},
		{"seconds", "seconds", more.Seconds, at.Seconds, &stop.Seconds},
		{"data_passes", "passes over the data", more.DataPasses, s.Passes, &stop.DataPasses},
		{"training_seconds", "seconds of training", more.TrainingSeconds, s.Seconds, &stop.TrainingSeconds},
		{"joules", "joules", more.Joules, float64(s.Energy.Joules), &stop.Joules},
	}
	var cost trial.Cost
	if s.Cost != nil {
		cost = *s.Cost
	}
	limits = append(limits, limit{"cost", cost.Currency, more.Cost, float64(cost.Amount), &stop.Cost}, limit{"co2_g", "g of CO2", more.CO2, float64(cost.Grams()), &stop.CO2})
	var faults []problem.Field
	given := 0
	for _, one := range limits {
		if one.more != 0 {
			given++
		}
		switch {
		case one.more < 0:
			faults = append(faults, problem.Field{Path: one.name, Value: one.more, Message: "must be how much more the study gets, above 0"})
		case one.more > 0 && at.Over:
			*one.limit = one.used + one.more
		case one.more > 0 && *one.limit == 0:
			faults = append(faults, problem.Field{Path: one.name, Value: one.more, Message: fmt.Sprintf("must be left out: the study has no stop.%s that could be raised while it runs", one.name)})
		default:
			*one.limit += one.more
		}
	}
	if most := float64(definition.MaxTrials); trials >= most {
		faults = append(faults, problem.Field{Path: "trials", Value: more.Trials, Message: fmt.Sprintf("must leave stop.trials below %d, and not make it %.0f", definition.MaxTrials, trials)})
	}
	if given == 0 && !more.RetryFailed {
		faults = append(faults, problem.Field{Path: "trials", Value: more.Trials, Message: "must be above 0, or else seconds, data_passes, training_seconds, joules, cost or co2_g"})
	}
	if len(faults) > 0 {
		return stop, problem.WithFields("the study is not extended", faults)
	}
	if trials > 0 {
		stop.Trials = int(trials)
	}
	for _, one := range limits[1:] {
		if at.Over && (Limit{Used: one.used, Limit: *one.limit}).Reached() && *one.limit > 0 {
			return stop, problem.New(problem.Conflict, "its budget of %g %s is spent (stop.%s): give it more of that too", *one.limit, one.unit, one.name)
		}
	}
	return stop, nil
}
