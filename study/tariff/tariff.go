// Package tariff answers what training costs, in money and in grams of CO2: by prices of
// energy and of hours of machines, and by the carbon intensity, each with times.
package tariff

import (
	"path"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Tariff holds prices and carbon intensities. The nil one has none.
type Tariff struct {
	currency         string
	energy, machines table // per kWh and per hour
	carbon           table // g per kWh
}

// table is rows of values, of which the first that holds counts.
type table struct {
	zone *time.Location
	rows []row
}

// row holds in a span of each day, in minutes, or from one moment to another.
type row struct {
	low, high int
	from, to  time.Time
	machine   string // a pattern
	value     float64
}

func (r row) holds(at time.Time, machine string) bool {
	if matched, err := path.Match(strings.ToLower(r.machine), strings.ToLower(machine)); r.machine != "" && (err != nil || !matched) {
		return false
	}
	if !r.from.IsZero() && at.Before(r.from) || !r.to.IsZero() && !at.Before(r.to) {
		return false
	}
	minute := at.Hour()*60 + at.Minute()
	if r.low <= r.high {
		return r.low <= minute && minute < r.high
	}
	return minute >= r.low || minute < r.high // over midnight
}

// at is the value at the moment.
func (t table) at(at time.Time, machine string) (float64, bool) {
	if t.zone != nil {
		at = at.In(t.zone)
	}
	for _, one := range t.rows {
		if one.holds(at, machine) {
			return one.value, true
		}
	}
	return 0, false
}

// mean is the value over a span, minute by minute as far as it is no longer than a day.
func (t table) mean(from time.Time, span time.Duration, machine string) (float64, bool) {
	pieces := min(max(1, int(span/time.Minute)), 24*60)
	sum := 0.0
	for i := range pieces {
		value, known := t.at(from.Add(span*time.Duration(2*i+1)/time.Duration(2*pieces)), machine)
		if !known {
			return 0, false
		}
		sum += value
	}
	return sum / float64(pieces), true
}

// Epoch is what an epoch took, and when it was over.
type Epoch struct {
	Machine             string
	Neighbours, Seconds float64 // trials beside it, which bear their part of the machine's hours
	Energy              trial.Energy
	At                  time.Time
}

// Cost is what the epoch cost; nil where nothing of it has a price. The joules are spread
// evenly over its time.
func (t *Tariff) Cost(e Epoch) *trial.Cost {
	if t == nil {
		return nil
	}
	var cost trial.Cost
	known := false
	span := time.Duration(min(e.Seconds, 1e9) * float64(time.Second))
	from := e.At.Add(-span)
	if price, has := t.machines.mean(from, span, e.Machine); has {
		cost.Amount, cost.Currency, known = trial.Float(price*e.Seconds/3600/(1+e.Neighbours)), t.currency, true
	}
	if e.Energy.Method == "" {
		if !known {
			return nil
		}
		return &cost
	}
	kwh := float64(e.Energy.Joules) / 3.6e6
	if price, has := t.energy.mean(from, span, ""); has {
		cost.Amount, cost.Currency, cost.Method, known = cost.Amount+trial.Float(price*kwh), t.currency, e.Energy.Method, true
	}
	if grams, has := t.carbon.mean(from, span, ""); has {
		cost.CO2, cost.Method, known = new(trial.Float(grams*kwh)), e.Energy.Method, true
	}
	if !known {
		return nil
	}
	return &cost
}

// Priced and Carbon report whether there are prices, and whether there is an intensity.
func (t *Tariff) Priced() bool { return t != nil && len(t.energy.rows)+len(t.machines.rows) > 0 }

func (t *Tariff) Carbon() bool { return t != nil && len(t.carbon.rows) > 0 }

// Check refuses a study that needs prices or an intensity which this server has not.
func (t *Tariff) Check(def definition.Definition) error {
	var faults []problem.Field
	lacks := func(path string, value any, carbon bool) {
		flag, what := "--prices", "prices"
		if carbon {
			flag, what = "--carbon", "carbon intensities"
		}
		if carbon && !t.Carbon() || !carbon && !t.Priced() {
			faults = append(faults, problem.Field{Path: path, Value: value, Message: "needs " + what + ", and this server has none: start it with " + flag + " FILE, or leave it out"})
		}
	}
	if def.Stop.Cost > 0 {
		lacks("stop.cost", def.Stop.Cost, false)
	}
	if def.Stop.CO2 > 0 {
		lacks("stop.co2_g", def.Stop.CO2, true)
	}
	if w := def.When; w != nil && w.PriceBelow != nil {
		if lacks("when.price_below", *w.PriceBelow, false); t.Priced() && len(t.energy.rows) == 0 {
			faults = append(faults, problem.Field{Path: "when.price_below", Value: *w.PriceBelow, Message: "needs prices of energy, and this server's prices name machines only: add energy to its file"})
		}
	}
	if w := def.When; w != nil && w.CO2Below != nil {
		lacks("when.co2_below", *w.CO2Below, true)
	}
	for _, one := range def.Names() {
		if one == definition.TrainCost {
			lacks("objective", one, false)
		} else if one == definition.TrainCO2 {
			lacks("objective", one, true)
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("this server cannot tell the study's costs", slices.CompactFunc(faults, func(a, b problem.Field) bool { return a.Path == b.Path && a.Value == b.Value }))
	}
	return nil
}
