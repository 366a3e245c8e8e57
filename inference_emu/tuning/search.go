package tuning

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// MaxConfigurations bounds what a search tries: of a larger space it tries configurations
// that are spread over it.
const MaxConfigurations = 10_000

// Settings is everything a search is made from.
type Settings struct {
	Space       Space        `json:"space"`
	Objective   Metric       `json:"objective"`
	Constraints []Constraint `json:"constraints,omitempty"`
	// Front are the metrics that the Pareto front is of; none is no front.
	Front []Metric `json:"front,omitempty"`
}

// Result is what a search has found.
type Result struct {
	// Best keeps to all constraints; nil if nothing that was tried does.
	Best *Evaluation `json:"best,omitempty"`
	// Nearest misses the constraints by the least, where there is no Best; nil if
	// nothing has an outcome.
	Nearest *Evaluation `json:"nearest,omitempty"`
	// Doubtful are constraints that Best keeps to with its value, but not with
	// the bad end of its band.
	Doubtful []string `json:"doubtful,omitempty"`
	// Unmet says why there is no Best, a sentence for each constraint.
	Unmet []string `json:"unmet,omitempty"`
	// Front is sorted by its first metric, the best first.
	Front []Evaluation `json:"front,omitempty"`
	// Evaluations is how many configurations were tried, Failures how many of
	// them had no outcome.
	Evaluations int `json:"evaluations"`
	Failures    int `json:"failures"`
	// Tried are all evaluations in the order of trying.
	Tried []Evaluation `json:"-"`
}

// Search tries all configurations, the last parameter changing first. An error is
// [problem.Invalid] and names every fault of the settings; that nothing is feasible is no
// error.
func Search(settings Settings, evaluate Evaluate) (Result, error) {
	if faults := settings.faults(); len(faults) > 0 {
		return Result{}, problem.WithFields("the inference cannot be tuned", faults)
	}
	l := &ledger{settings: settings}
	axes := thinned(settings.Space.axes(), MaxConfigurations)
	point := make([]int, len(axes))
	for {
		c := at(axes, point)
		outcome, err := evaluate(c)
		l.tried = append(l.tried, settings.judge(c, outcome, err))
		i := len(point) - 1
		for ; i >= 0; i-- {
			if point[i]++; point[i] < len(axes[i].values) {
				break
			}
			point[i] = 0
		}
		if i < 0 {
			return l.result(), nil
		}
	}
}

func (l *ledger) result() Result {
	r := Result{Evaluations: len(l.tried), Front: l.front(), Tried: l.tried}
	for _, e := range l.tried {
		if e.Failure != "" {
			r.Failures++
		}
	}
	best := l.best()
	if best != nil && best.Feasible() {
		r.Best, r.Doubtful = best, l.settings.Doubtful(*best)
		return r
	}
	r.Nearest, r.Unmet = best, l.unmet()
	return r
}

// Doubtful are the constraints that hold but for the band.
func (s Settings) Doubtful(e Evaluation) []string {
	var list []string
	for _, c := range s.Constraints {
		if value, err := c.Metric.worst(e.Configuration, e.Outcome); err == nil && c.missed(value) > 0 {
			list = append(list, c.String())
		}
	}
	return list
}

// unmet says of each constraint how near anything comes to it.
func (l *ledger) unmet() []string {
	var list []string
	alone := 0
	for _, c := range l.settings.Constraints {
		nearest, least := 0.0, math.Inf(1)
		for _, e := range l.tried {
			value, err := c.Metric.Value(e.Configuration, e.Outcome)
			if missed := c.missed(value); err == nil && e.Failure == "" && missed < least {
				nearest, least = value, missed
			}
		}
		switch {
		case math.IsInf(least, 1):
		case least > 0:
			list = append(list, fmt.Sprintf("%s: nothing that was tried keeps to it; the nearest has %s", c, c.shown(nearest)))
		default:
			alone++
		}
	}
	if len(list) == 0 && alone > 1 {
		list = append(list, "each constraint is kept to by some configuration, but by none all of them together")
	}
	if len(l.tried) > 0 && l.best() == nil {
		list = append(list, "no configuration has an outcome; the first failed with: "+l.tried[0].Failure)
	}
	return list
}

// sorted orders a front by its metrics.
func (l *ledger) sorted(front []Evaluation) []Evaluation {
	key := func(e Evaluation) []float64 {
		var values []float64
		for _, metric := range l.settings.Front {
			value, _ := metric.score(e.Configuration, e.Outcome) // known: it is on the front
			values = append(values, value)
		}
		return values
	}
	slices.SortStableFunc(front, func(a, b Evaluation) int { return slices.Compare(key(a), key(b)) })
	return front
}

func (s Settings) faults() []problem.Field {
	faults := append(s.Space.faults("space"), s.Objective.faults("objective")...)
	for i, c := range s.Constraints {
		at := fmt.Sprintf("constraints[%d]", i)
		faults = append(faults, c.Metric.faults(at+".metric")...)
		if !(c.Bound > 0) || math.IsInf(c.Bound, 1) || c.AtLeast != c.Metric.Maximize() {
			faults = append(faults, problem.Field{Path: at, Message: "must bound the metric from its bad side by a number above 0", Value: c.String()})
		}
	}
	for i, m := range s.Front {
		faults = append(faults, m.faults(fmt.Sprintf("front[%d]", i))...)
	}
	return faults
}
