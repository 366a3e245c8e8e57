package ranking

import (
	"fmt"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/objective"
	"github.com/tandem-tune/tandem/trial"
)

// goal is an objective or a constraint, ready to be computed.
type goal struct {
	what    string // "objective" or "constraint", with its label
	label   string
	formula objective.Formula
	bounds  objective.Bounds // of a constraint
}

// Goals are what a study wants of a trial, ready to be computed.
type Goals struct {
	def                     definition.Definition
	objectives, constraints []goal
}

// GoalsOf makes a checked definition's objectives and constraints ready. The
// error says that they were written for another version.
func GoalsOf(def definition.Definition) (*Goals, error) {
	a := &Goals{def: def}
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
func (g *Goals) all() []goal { return slices.Concat(g.objectives, g.constraints) }

// Missing names the numbers that the study's objectives and constraints need
// of the report that ends a budget, and that are neither in it nor known
// otherwise.
func (g *Goals) Missing(t trial.Trial, report protocol.Report) []problem.Field {
	if report.Energy != nil {
		t.Energy = t.Energy.Plus(*report.Energy)
	}
	known := Numbers(t, report.Metrics)
	var faults []problem.Field
	told := make(map[string]bool)
	for _, goal := range g.all() {
		for _, name := range goal.formula.Names() {
			if _, ok := known[name]; !ok && !told[name] {
				told[name] = true
				faults = append(faults, problem.Field{Path: "metrics." + name, Message: goal.lacks(name, report, g.def.Inference != nil)})
			}
		}
	}
	return faults
}

// lacks says that a number is missing.
func (g goal) lacks(name string, report protocol.Report, inferred bool) string {
	switch {
	case name == TrainJoules:
		return fmt.Sprintf("%s needs it, and neither the worker nor the script reported any energy", g.what)
	case name == definition.TrainCost || name == definition.TrainCO2:
		return fmt.Sprintf("%s needs it: the server must know the price (--prices, --carbon), and the worker or the script the energy", g.what)
	case inferred && slices.Contains(definition.EdgeNames(), name):
		return fmt.Sprintf("%s needs it: the script has to call trial.save_model before its first epoch; where it did, the trial's log says why that model could not be used", g.what)
	case name == g.label:
		return fmt.Sprintf("%s is missing in the report that ends the budget (reported: %s)", g.what, strings.Join(slices.Sorted(maps.Keys(report.Metrics)), ", "))
	default:
		return fmt.Sprintf("%s needs it, and it is missing in the report that ends the budget (reported: %s)", g.what, strings.Join(slices.Sorted(maps.Keys(report.Metrics)), ", "))
	}
}

// Result is the trial's at its rung, with the report that ended the budget counted in.
// Nothing it needs is missing.
func (g *Goals) Result(t trial.Trial, metrics map[string]trial.Float) trial.Result {
	result := trial.Result{Rung: t.Rung, Budget: t.Budget, Deflation: t.Deflation}
	if t.Budget.Measured() {
		result.Epoch = t.LastEpoch
		result.Estimated = t.Budget.Joules > 0 && t.Energy.Estimated()
	}
	known := Numbers(t, metrics)
	for _, goal := range g.objectives {
		result.Values = append(result.Values, trial.Float(goal.formula.Value(known)))
	}
	for _, goal := range g.constraints {
		result.Violation += trial.Float(goal.bounds.Violation(goal.formula.Value(known)))
	}
	if len(g.constraints) > 0 && diverged(result.Values, g.def.Objectives) {
		result.Violation = trial.Float(math.Inf(1)) // whatever it keeps to, it stands behind all that can be compared
	}
	result.Estimated = result.Estimated || protocol.Estimated(g.objectives[0].formula.Names(), metrics, t)
	for name, estimated := range map[string]bool{TrainJoules: t.Energy.Estimated(), definition.TrainCost: t.Cost.Estimated(), definition.TrainCO2: t.Cost.Estimated()} {
		if _, reported := metrics[name]; !reported && estimated {
			result.Estimated = result.Estimated || slices.Contains(g.Names(), name)
		}
	}
	return result
}

// AtEdge reports whether an objective or a constraint uses what the server knows of
// inference.
func (g *Goals) AtEdge() bool {
	return slices.ContainsFunc(g.Names(), func(name string) bool { return slices.Contains(definition.EdgeNames(), name) })
}

// diverged reports whether there is a value that nothing can be compared with.
func diverged(values []trial.Float, objectives []definition.Objective) bool {
	if len(objectives) == 1 {
		return values[0].IsNaN()
	}
	return PointOf(values, objectives) == nil
}

// Names are the numbers that the objectives need, and then the constraints.
func (g *Goals) Names() (names []string) {
	for _, goal := range g.all() {
		names = append(names, goal.formula.Names()...)
	}
	return names
}

// Values are the objectives after a report, which is counted in already; false
// if something they need is missing, as only the last report of a rung must
// have it all.
func (g *Goals) Values(t trial.Trial, metrics map[string]trial.Float) ([]trial.Float, bool) {
	known := Numbers(t, metrics)
	var values []trial.Float
	for _, goal := range g.objectives {
		for _, name := range goal.formula.Names() {
			if _, ok := known[name]; !ok {
				return nil, false
			}
		}
		values = append(values, trial.Float(goal.formula.Value(known)))
	}
	return values, true
}
