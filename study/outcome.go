package study

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/objective"
	"github.com/tandem-tune/tandem/study/ranking"
	"github.com/tandem-tune/tandem/trial"
)

// goal is an objective or a constraint, ready to be computed.
type goal struct {
	what    string // "objective" or "constraint", with its label
	label   string
	formula objective.Formula
	bounds  objective.Bounds // of a constraint
}

// aims are what a study wants of a trial, ready to be computed.
type aims struct{ objectives, constraints []goal }

// aimsOf makes a checked definition's objectives and constraints ready. The
// error says that they were written for another version.
func aimsOf(def definition.Definition) (*aims, error) {
	a := &aims{}
	unknown := func(what string, err error) error {
		return problem.New(problem.Unavailable, "%s %w: continue this study with the version of tandem that wrote it", what, err)
	}
	for _, one := range def.Objectives {
		what := "the objective " + one.Label()
		formula, err := one.Formula()
		if err != nil {
			return nil, unknown(what, err)
		}
		a.objectives = append(a.objectives, goal{what: what, label: one.Label(), formula: formula})
	}
	for _, one := range def.Constraints {
		what := "the constraint on " + one.Label()
		formula, err := one.Formula()
		if err != nil {
			return nil, unknown(what, err)
		}
		a.constraints = append(a.constraints, goal{what: what, label: one.Label(), formula: formula, bounds: one.Bounds()})
	}
	return a, nil
}

// all are the objectives and the constraints.
func (a *aims) all() []goal { return slices.Concat(a.objectives, a.constraints) }

// aims are the study's, made ready once.
func (r *session) aims() (*aims, error) {
	if r.ready == nil {
		ready, err := aimsOf(r.study.Definition)
		if err != nil {
			return nil, err
		}
		r.ready = ready
	}
	return r.ready, nil
}

// missing names the numbers that the study's objectives and constraints need
// of the report that ends a budget, and that are neither in it nor known
// otherwise.
func (r *session) missing(t trial.Trial, report protocol.Report) ([]problem.Field, error) {
	aims, err := r.aims()
	if err != nil {
		return nil, err
	}
	if report.Energy != nil {
		t.Energy = t.Energy.Plus(*report.Energy)
	}
	known := ranking.Numbers(t, report.Metrics)
	var faults []problem.Field
	told := make(map[string]bool)
	for _, goal := range aims.all() {
		for _, name := range goal.formula.Names() {
			if _, ok := known[name]; !ok && !told[name] {
				told[name] = true
				faults = append(faults, problem.Field{Path: "metrics." + name, Message: goal.lacks(name, report, r.study.Definition.Inference != nil)})
			}
		}
	}
	return faults, nil
}

// lacks says that a number is missing.
func (g goal) lacks(name string, report protocol.Report, inferred bool) string {
	switch {
	case name == ranking.TrainJoules:
		return fmt.Sprintf("%s needs it, and neither the worker nor the script reported any energy", g.what)
	case inferred && slices.Contains(definition.EdgeNames(), name):
		return fmt.Sprintf("%s needs it: the script has to call trial.save_model before its first epoch, and the worker's log says what became of that", g.what)
	case name == g.label:
		return fmt.Sprintf("%s is missing in the report that ends the budget (reported: %s)", g.what, names(report.Metrics))
	default:
		return fmt.Sprintf("%s needs it, and it is missing in the report that ends the budget (reported: %s)", g.what, names(report.Metrics))
	}
}

// result is the outcome, with when it was measured.
func (tx *transaction) result(t trial.Trial, metrics map[string]trial.Float) trial.Result {
	result, at := tx.session.outcome(t, metrics), tx.now
	result.At = &at
	return result
}

// outcome is the trial's result at its rung, with the report that ended the
// budget counted in. Nothing it needs is missing: the report was checked.
func (r *session) outcome(t trial.Trial, metrics map[string]trial.Float) trial.Result {
	result := trial.Result{Rung: t.Rung, Budget: t.Budget, Deflation: t.Deflation}
	aims, err := r.aims()
	if err != nil {
		return result // the check of the report has refused it
	}
	if t.Budget.Measured() {
		result.Epoch = t.LastEpoch
		result.Estimated = t.Budget.Joules > 0 && t.Energy.Estimated()
	}
	known := ranking.Numbers(t, metrics)
	for _, goal := range aims.objectives {
		result.Values = append(result.Values, trial.Float(goal.formula.Value(known)))
	}
	for _, goal := range aims.constraints {
		result.Violation += trial.Float(goal.bounds.Violation(goal.formula.Value(known)))
	}
	if len(aims.constraints) > 0 && diverged(result.Values, r.study.Definition.Objectives) {
		result.Violation = trial.Float(math.Inf(1)) // whatever it keeps to, it stands behind all that can be compared
	}
	result.Estimated = result.Estimated || protocol.Estimated(aims.objectives[0].formula.Names(), metrics, t)
	if _, reported := metrics[ranking.TrainJoules]; !reported && t.Energy.Estimated() {
		result.Estimated = result.Estimated || slices.ContainsFunc(aims.all(), func(g goal) bool { return slices.Contains(g.formula.Names(), ranking.TrainJoules) })
	}
	return result
}

// usesEdge reports whether a formula uses what the server knows of inference.
func usesEdge(g goal) bool {
	return slices.ContainsFunc(g.formula.Names(), func(name string) bool { return slices.Contains(definition.EdgeNames(), name) })
}

// aimsAtEdge reports whether an objective or a constraint is about inference.
func (r *session) aimsAtEdge() bool {
	aims, err := r.aims()
	return err == nil && slices.ContainsFunc(aims.all(), func(g goal) bool { return usesEdge(g) })
}

// diverged reports whether there is a value that nothing can be compared with.
func diverged(values []trial.Float, objectives []definition.Objective) bool {
	if len(objectives) == 1 {
		return values[0].IsNaN()
	}
	return ranking.PointOf(values, objectives) == nil
}

// toReport are the metrics that every report at the end of a budget must have,
// in the order of the objectives, and then of the constraints. Of a study whose
// formulas this program cannot read there are none; its reports are refused
// with the reason.
func (r *session) toReport() []string {
	var names []string
	aims, err := r.aims()
	if err != nil {
		return r.study.Definition.NeedsReported(nil)
	}
	for _, goal := range aims.all() {
		names = append(names, goal.formula.Names()...)
	}
	return r.study.Definition.NeedsReported(names)
}
