package tuning

import (
	"errors"
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/study/pareto"
)

// ledger has every configuration that was tried, in the order of trying.
type ledger struct {
	settings Settings
	tried    []Evaluation
}

// judge says what an outcome is worth.
func (s Settings) judge(c Configuration, outcome Outcome, err error) Evaluation {
	e := Evaluation{Configuration: c, Outcome: outcome, Violation: math.Inf(1)}
	if err == nil {
		err = outcome.check()
	}
	violation := 0.0
	if err == nil {
		e.score, err = s.Objective.score(c, outcome)
	}
	for _, constraint := range s.Constraints {
		if err != nil {
			break
		}
		var value float64
		if value, err = constraint.Metric.Value(c, outcome); err == nil {
			violation += constraint.missed(value)
		}
	}
	if err != nil {
		e.Outcome, e.Failure = Outcome{}, err.Error()
		if e.Failure == "" {
			e.Failure = "no reason was given"
		}
		return e
	}
	e.Violation = violation
	return e
}

func (o Outcome) check() error {
	if !(o.LatencySeconds > 0) {
		return errors.New("the latency is no number above 0")
	}
	for _, v := range []float64{o.LatencySeconds, o.LatencySecondsLow, o.LatencySecondsHigh, o.Joules, o.JoulesLow, o.JoulesHigh, float64(o.MemoryBytes)} {
		if !(v >= 0) || math.IsInf(v, 1) {
			return fmt.Errorf("the outcome has the number %v", v)
		}
	}
	return nil
}

// best is the best evaluation, nil if none has an outcome.
func (l *ledger) best() *Evaluation {
	var best *Evaluation
	for i := range l.tried {
		if l.tried[i].Failure == "" && (best == nil || l.tried[i].Better(*best)) {
			best = &l.tried[i]
		}
	}
	return best
}

// front are the feasible evaluations that no other one beats in all metrics, in
// the order of the first.
func (l *ledger) front() []Evaluation {
	var points []pareto.Point
	var candidates []Evaluation
	for _, e := range l.tried {
		if !e.Feasible() {
			continue
		}
		point, known := pareto.Point{}, true
		for _, metric := range l.settings.Front {
			value, err := metric.score(e.Configuration, e.Outcome)
			known = known && err == nil
			point = append(point, -value)
		}
		if known {
			points, candidates = append(points, point), append(candidates, e)
		}
	}
	if len(points) == 0 {
		return nil
	}
	var front []Evaluation
	for _, place := range pareto.Fronts(points)[0] {
		front = append(front, candidates[place])
	}
	return l.sorted(front)
}
