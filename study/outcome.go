package study

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/objective"
	"github.com/tandem-tune/tandem/trial"
)

// trainJoules is the one number of the server's that may be an estimate, or
// not known at all.
const trainJoules = "train_joules"

// goal is an objective, ready to be computed.
type goal struct {
	label   string
	formula objective.Formula
}

// goalsOf makes a checked definition's objectives ready. The error says that
// they were written for another version.
func goalsOf(def definition.Definition) ([]goal, error) {
	var goals []goal
	for _, one := range def.Objectives {
		formula, err := one.Formula()
		if err != nil {
			return nil, problem.New(problem.Unavailable, "the objective %s %w: continue this study with the version of tandem that wrote it", one.Label(), err)
		}
		goals = append(goals, goal{one.Label(), formula})
	}
	return goals, nil
}

// goals are the study's objectives, made ready once.
func (r *runtime) goals() ([]goal, error) {
	if r.ready == nil {
		goals, err := goalsOf(r.study.Definition)
		if err != nil {
			return nil, err
		}
		r.ready = goals
	}
	return r.ready, nil
}

// numbers are what formulas may use of a trial: the metrics of a report, and
// what the server knows of it with the report counted in. A metric goes before
// a number of the server's with the same name.
func numbers(t trial.Trial, metrics map[string]trial.Float) map[string]float64 {
	known := map[string]float64{
		"train_seconds": float64(t.Seconds), "epochs": float64(t.Budget.Epochs), "data_fraction": t.Budget.DataFraction,
	}
	if t.Energy.Method != "" {
		known[trainJoules] = float64(t.Energy.Joules)
	}
	for name, value := range metrics {
		known[name] = float64(value)
	}
	return known
}

// missing names the numbers that the study's objectives need of the report
// that ends a budget, and that are neither in it nor known otherwise.
func (r *runtime) missing(t trial.Trial, report protocol.Report) ([]problem.Field, error) {
	goals, err := r.goals()
	if err != nil {
		return nil, err
	}
	if report.Energy != nil {
		t.Energy = t.Energy.Plus(*report.Energy)
	}
	known := numbers(t, report.Metrics)
	var faults []problem.Field
	for _, goal := range goals {
		for _, name := range goal.formula.Names() {
			if _, ok := known[name]; !ok {
				faults = append(faults, problem.Field{Path: "metrics." + name, Message: goal.lacks(name, report)})
			}
		}
	}
	return faults, nil
}

// lacks says that a number is missing.
func (g goal) lacks(name string, report protocol.Report) string {
	switch {
	case name == trainJoules:
		return fmt.Sprintf("the objective %s needs it, and neither the worker nor the script reported any energy", g.label)
	case name == g.label:
		return fmt.Sprintf("the objective is missing in the report that ends the budget (reported: %s)", names(report.Metrics))
	default:
		return fmt.Sprintf("the objective %s needs it, and it is missing in the report that ends the budget (reported: %s)", g.label, names(report.Metrics))
	}
}

// outcome is the trial's result at its rung, with the report that ended the
// budget counted in. Nothing it needs is missing: the report was checked.
func (r *runtime) outcome(t trial.Trial, metrics map[string]trial.Float) trial.Result {
	result := trial.Result{Rung: t.Rung, Budget: t.Budget}
	known := numbers(t, metrics)
	_, reported := metrics[trainJoules]
	goals, _ := r.goals() // the check of the report made sure
	for _, goal := range goals {
		result.Values = append(result.Values, trial.Float(goal.formula.Value(known)))
		if !reported && t.Energy.Estimated() && slices.Contains(goal.formula.Names(), trainJoules) {
			result.Estimated = true
		}
	}
	return result
}

// toReport are the metrics that every report at the end of a budget must have,
// in the order of the objectives. Of a study whose formulas this program cannot
// read there are none; its reports are refused with the reason.
func (r *runtime) toReport() []string {
	goals, _ := r.goals()
	var names []string
	for _, goal := range goals {
		names = append(names, goal.formula.Names()...)
	}
	return definition.NeedsReported(names)
}
