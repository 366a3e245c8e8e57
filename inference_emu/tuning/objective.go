package tuning

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Term is a part of an objective.
type Term struct {
	Metric Metric `json:"metric"`
	// Weight says how much the metric counts, above 0. With weights 2 and 1,
	// halving the first is worth as much as quartering the second.
	Weight float64 `json:"weight"`
}

// Objective is what is minimized: the product of the metrics, each to the power
// of its weight, Throughput inverted. So weights need no units, and one term is
// that metric alone.
type Objective []Term

// Only returns the objective of one metric.
func Only(m Metric) Objective { return Objective{{Metric: m, Weight: 1}} }

// score is the logarithm of what is minimized.
func (o Objective) score(c Configuration, outcome Outcome, p Prices) (float64, error) {
	total := 0.0
	for _, term := range o {
		value, err := term.Metric.Value(c, outcome, p)
		if err != nil {
			return 0, err
		}
		part := term.Weight * math.Log(value)
		if term.Metric.Maximize() {
			part = -part
		}
		total += part
	}
	return total, nil
}

func (o Objective) faults(path string, prices Prices) []problem.Field {
	var faults []problem.Field
	if len(o) == 0 || len(o) > len(Metrics()) {
		return append(faults, problem.Field{Path: path, Message: fmt.Sprintf("must have 1 to %d metrics", len(Metrics())), Value: len(o)})
	}
	seen := map[Metric]bool{}
	for i, term := range o {
		at := fmt.Sprintf("%s[%d]", path, i)
		faults = append(faults, metricFaults(at+".metric", term.Metric, prices)...)
		if !(term.Weight > 0) || term.Weight > 1e6 {
			faults = append(faults, problem.Field{Path: at + ".weight", Message: "must be above 0 and at most 1e6", Value: fmt.Sprint(term.Weight)})
		}
		if seen[term.Metric] {
			faults = append(faults, problem.Field{Path: at + ".metric", Message: "is there twice: add the weights", Value: string(term.Metric)})
		}
		seen[term.Metric] = true
	}
	return faults
}

func metricFaults(path string, m Metric, prices Prices) []problem.Field {
	if _, err := ParseMetric(string(m)); err != nil {
		return []problem.Field{{Path: path, Message: "must be one of " + metricNames(), Value: string(m)}}
	}
	if m == Cost && !(prices.Hour > 0) && !(prices.KilowattHour > 0) {
		return []problem.Field{{Path: "prices", Message: "must have a price above 0, for an hour of the device or for a kilowatt hour, as " + path + " is a cost"}}
	}
	return nil
}
