package dopeml

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Criterion is one of the things users judge a deployment by.
type Criterion string

// The criteria.
const (
	// ByLatency is the response time in seconds: waiting and running a batch.
	ByLatency Criterion = "latency"
	// ByAccuracy is of the model on the backend, 0 to 1; more is better.
	ByAccuracy Criterion = "accuracy"
	// ByEnergy is joules an inference.
	ByEnergy Criterion = "energy"
	// ByCost is money an inference.
	ByCost Criterion = "cost"
)

// Criteria are all of them, in the order in which they are shown.
func Criteria() []Criterion { return []Criterion{ByLatency, ByAccuracy, ByEnergy, ByCost} }

// Wishes are what a user wants most, and what must hold.
type Wishes struct {
	// Weights are priorities: with latency 2 and energy 1, being one percent
	// faster is worth two percent more energy. At least one is above 0.
	Weights map[Criterion]float64 `json:"weights"`
	// Limits must hold for what is predicted: at most so much latency, energy
	// and cost, at least so much accuracy.
	Limits map[Criterion]float64 `json:"limits,omitempty"`
}

// Check refuses wishes that rank nothing.
func (w Wishes) Check() error {
	var faults []problem.Field
	known := map[Criterion]bool{}
	some := false
	for _, criterion := range Criteria() {
		known[criterion] = true
		if weight := w.Weights[criterion]; !(weight >= 0 && weight <= 1e6) {
			faults = append(faults, problem.Field{Path: "weights." + string(criterion), Value: weight, Message: "must be 0 to 1000000"})
		} else if weight > 0 {
			some = true
		}
		if limit, given := w.Limits[criterion]; given && !(limit > 0 && finite(limit)) {
			faults = append(faults, problem.Field{Path: "limits." + string(criterion), Value: limit, Message: "must be above 0"})
		}
	}
	for _, given := range []map[Criterion]float64{w.Weights, w.Limits} {
		for criterion := range given {
			if !known[criterion] {
				return problem.New(problem.Invalid, "there is no criterion %q; the criteria are %v", criterion, Criteria())
			}
		}
	}
	if !some {
		faults = append(faults, problem.Field{Path: "weights", Message: "give at least one criterion a weight above 0"})
	}
	if len(faults) > 0 {
		return problem.WithFields("the priorities cannot be used", faults)
	}
	return nil
}

// Outcome is what a deployment means for its user. NaN is for what is not known.
type Outcome struct {
	// Latency in seconds, with the waiting; infinite when the backend cannot
	// keep up with the rate.
	Latency float64
	// Accuracy is 0 to 1.
	Accuracy float64
	// Energy is joules an inference; of a backend whose rate and idle watts are
	// known, with its share of the time when nothing runs.
	Energy float64
	// Cost is of one inference: of the time it runs, or, when the rate is
	// known, of the time until the next, since the deployment stays up.
	Cost float64
	// Busy is the share of the time in which the backend works; 0 when the rate
	// is not known.
	Busy float64
}

// Judge works out what a run with these measures means. What nobody measured
// is taken from the profile and the model where they say it.
func Judge(profile Profile, model Model, request Request, values Values) Outcome {
	latency := values[LatencySeconds]
	run := latency / max(request.Batch, 1) // seconds of running for an inference
	o := Outcome{Latency: latency + request.wait(latency), Accuracy: values[Accuracy], Energy: values[JoulesPerInference],
		Cost: math.NaN(), Busy: request.busy(latency)}
	if request.Rate == 0 {
		o.Busy = 0
	}
	if math.IsNaN(o.Accuracy) && model.Accuracy > 0 {
		o.Accuracy = max(0, model.Accuracy-profile.AccuracyLoss)
	}
	if math.IsNaN(o.Energy) && profile.LoadWatts > 0 {
		o.Energy = profile.LoadWatts * run
	}
	each := run
	if request.Rate > 0 {
		each = max(run, 1/request.Rate)
		if profile.IdleWatts > 0 {
			o.Energy += profile.IdleWatts * (each - run)
		}
	}
	if profile.CostPerHour > 0 {
		o.Cost = profile.CostPerHour / 3600 * each
	}
	return o
}

// Of is the outcome by a criterion.
func (o Outcome) Of(criterion Criterion) float64 {
	switch criterion {
	case ByLatency:
		return o.Latency
	case ByAccuracy:
		return o.Accuracy
	case ByEnergy:
		return o.Energy
	}
	return o.Cost
}

// Loss is how bad an outcome is by the weights: the weighted mean of the
// logarithms of latency, energy, cost and of the inverse of accuracy. Only
// differences mean something: 0.1 more is about 10% worse all in all. It is NaN
// when something with a weight is not known.
func (w Wishes) Loss(o Outcome) float64 {
	sum, weights := 0.0, 0.0
	for _, criterion := range Criteria() {
		weight := w.Weights[criterion]
		if weight == 0 {
			continue
		}
		value := math.Log(max(o.Of(criterion), 1e-30))
		if criterion == ByAccuracy {
			value = -math.Log(max(o.Accuracy, 1e-6))
		}
		sum += weight * value
		weights += weight
	}
	return sum / weights
}

// Broken says which limits an outcome does not keep, and what is missing to
// judge it.
func (w Wishes) Broken(o Outcome) []string {
	var broken []string
	if o.Busy >= 1 {
		broken = append(broken, fmt.Sprintf("it cannot keep up: it would be busy %.0f%% of the time", 100*o.Busy))
	}
	for _, criterion := range Criteria() {
		value := o.Of(criterion)
		limit, limited := w.Limits[criterion]
		switch {
		case math.IsNaN(value):
			if limited || w.Weights[criterion] > 0 {
				broken = append(broken, fmt.Sprintf("its %s is not known: %s", criterion, remedy(criterion)))
			}
		case limited && criterion == ByAccuracy && value < limit:
			broken = append(broken, fmt.Sprintf("accuracy %s is below %s", amount(criterion, value, 5), amount(criterion, limit, 5)))
		case limited && criterion != ByAccuracy && value > limit && o.Busy < 1:
			broken = append(broken, fmt.Sprintf("%s %s is above %s", criterion, amount(criterion, value, 5), amount(criterion, limit, 5)))
		}
	}
	return broken
}

func remedy(criterion Criterion) string {
	switch criterion {
	case ByAccuracy:
		return "no run measured it and the model's features do not have it"
	case ByEnergy:
		return "no run measured joules_per_inference and the profile has no load_watts"
	case ByCost:
		return "its profile has no cost_per_hour"
	}
	return "no run measured latency_seconds"
}

// Amount is a value of a criterion for people to read.
func Amount(criterion Criterion, value float64) string {
	if criterion == ByAccuracy {
		return fmt.Sprintf("%.2f%%", 100*value)
	}
	return amount(criterion, value, 3)
}

func amount(criterion Criterion, value float64, digits int) string {
	switch criterion {
	case ByLatency:
		return fmt.Sprintf("%.*g ms", digits, 1000*value)
	case ByAccuracy:
		return fmt.Sprintf("%.*g%%", digits, 100*value)
	case ByEnergy:
		return fmt.Sprintf("%.*g J", digits, value)
	}
	return fmt.Sprintf("%.*g", digits, value)
}
