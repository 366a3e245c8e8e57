package report

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Measurement is a trial's result at a rung.
type Measurement struct {
	At     time.Time
	Number int
	Rung   int
	// Value is of the first objective; NaN and the infinities are values.
	Value float64
	// Violation is by how much the constraints are missed; 0: they hold.
	Violation float64
	// Epochs is how many all trials together had trained by then.
	Epochs int
}

// Point is an epoch of a learning curve.
type Point struct {
	Epoch, Rung int
	Value       float64
}

// Span is the time a worker held a trial.
type Span struct {
	Worker   string
	Number   int
	Rung     int
	From, To time.Time
	// End is the state the trial went to; running where it still is held.
	End trial.State
}

// History is what happened in a study, in its order.
type History struct {
	Measurements []Measurement
	Spans        []Span
	// Curves are the learning curves by the trials' numbers; Metric is what they
	// are of.
	Curves map[int][]Point
	Metric string
	// Last is when the last event happened.
	Last time.Time
}

// collector makes a history of events.
type collector struct {
	history History
	formula bool
	epochs  int
	rungs   map[int]map[int]bool // results that were seen, by trial and rung
	open    map[int]Span
}

func newCollector(def definition.Definition) *collector {
	objective := def.Objectives[0]
	return &collector{
		history: History{Curves: map[int][]Point{}, Metric: objective.Metric}, formula: objective.Metric == "",
		rungs: map[int]map[int]bool{}, open: map[int]Span{},
	}
}

// happening is what of an event the history is made from.
type happening struct {
	At     time.Time       `json:"at"`
	Kind   string          `json:"kind"`
	Number *int            `json:"number"`
	State  trial.State     `json:"state"`
	Worker string          `json:"worker"`
	Data   json.RawMessage `json:"data"`
}

// The kinds of events that say something about trials.
const (
	reportEvent = "report"
	stateEvent  = "trial_state"
)

func (c *collector) add(event happening) error {
	c.history.Last = event.At
	if event.Number == nil {
		return nil
	}
	switch event.Kind {
	case reportEvent:
		return c.report(*event.Number, event.Data)
	case stateEvent:
		return c.state(event)
	}
	return nil
}

func (c *collector) report(number int, data json.RawMessage) error {
	var told struct {
		Rung    int                    `json:"rung"`
		Epoch   int                    `json:"epoch"`
		Metrics map[string]trial.Float `json:"metrics"`
	}
	if err := json.Unmarshal(data, &told); err != nil {
		return fmt.Errorf("a report of trial %d: %w", number, err)
	}
	c.epochs++
	if c.formula && c.history.Metric == "" {
		// A formula has no curve of its own: the first metric stands in for it.
		for name := range told.Metrics {
			if c.history.Metric == "" || name < c.history.Metric {
				c.history.Metric = name
			}
		}
	}
	if value, has := told.Metrics[c.history.Metric]; has {
		c.history.Curves[number] = append(c.history.Curves[number], Point{told.Epoch, told.Rung, float64(value)})
	}
	return nil
}

func (c *collector) state(event happening) error {
	number := *event.Number
	var told struct {
		RepeatOf *int           `json:"repeat_of"`
		Rung     int            `json:"rung"`
		Results  []trial.Result `json:"results"`
	}
	if len(event.Data) > 0 {
		if err := json.Unmarshal(event.Data, &told); err != nil {
			return fmt.Errorf("a change of state of trial %d: %w", number, err)
		}
	}
	c.lease(event, number, told.Rung)
	if told.RepeatOf != nil {
		return nil // it measures again what leads already
	}
	for _, result := range told.Results {
		if len(result.Values) == 0 || c.rungs[number][result.Rung] {
			continue
		}
		if c.rungs[number] == nil {
			c.rungs[number] = map[int]bool{}
		}
		c.rungs[number][result.Rung] = true
		c.history.Measurements = append(c.history.Measurements, Measurement{
			At: event.At, Number: number, Rung: result.Rung, Value: float64(result.Values[0]), Violation: float64(result.Violation), Epochs: c.epochs,
		})
	}
	return nil
}

// lease opens a span where a worker got the trial, and closes it where it let go.
func (c *collector) lease(event happening, number, rung int) {
	held, holds := c.open[number]
	switch {
	case event.State == trial.Leased:
		c.open[number] = Span{Worker: event.Worker, Number: number, Rung: rung, From: event.At}
	case holds && event.State != trial.Running:
		held.To, held.End = event.At, event.State
		c.history.Spans = append(c.history.Spans, held)
		delete(c.open, number)
	}
}

func (c *collector) end() History {
	for _, held := range c.open {
		held.To, held.End = c.history.Last, trial.Running
		c.history.Spans = append(c.history.Spans, held)
	}
	slices.SortStableFunc(c.history.Spans, func(a, b Span) int {
		if order := a.From.Compare(b.From); order != 0 {
			return order
		}
		return a.Number - b.Number
	})
	return c.history
}

// better reports whether a is better than b; NaN is never better.
func better(a, b float64, direction definition.Direction) bool {
	switch {
	case math.IsNaN(a):
		return false
	case math.IsNaN(b):
		return true
	case direction == definition.Maximize:
		return a > b
	}
	return a < b
}

// leads reports whether a goes before b: feasible ones before others, then those
// of higher rungs, since values of different budgets do not compare.
func (m Measurement) leads(other Measurement, direction definition.Direction) bool {
	switch {
	case m.Violation > 0 != (other.Violation > 0):
		return m.Violation == 0
	case m.Rung != other.Rung:
		return m.Rung > other.Rung
	case m.Violation != other.Violation:
		return m.Violation < other.Violation
	}
	return better(m.Value, other.Value, direction)
}

// Leaders are the measurements that led when they were made, in their order.
func (h History) Leaders(direction definition.Direction) []Measurement {
	var leaders []Measurement
	for _, one := range h.Measurements {
		if math.IsNaN(one.Value) {
			continue
		}
		if len(leaders) == 0 || one.leads(leaders[len(leaders)-1], direction) {
			leaders = append(leaders, one)
		}
	}
	return leaders
}
