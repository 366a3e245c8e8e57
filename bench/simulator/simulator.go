// Package simulator runs a whole study on recorded learning curves in simulated
// time, thousands of times faster than it would train: what would this search
// have found, how soon, with how many workers?
//
// It is no copy of the server: [Run] drives the server's own study.Service, on
// a store in memory, through the calls a worker makes, and only the clock is
// simulated. One loop takes the next event of any worker from a queue; there
// are no goroutines and no waiting.
//
// Its one invariant: equal definitions, benchmarks and options give equal
// traces, whatever the machine. It must not know how a search decides.
package simulator

import (
	"math"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
)

// Measurement is what training one epoch gives.
type Measurement struct {
	// Value is the first objective's metric after the epoch; NaN for a
	// configuration that diverged.
	Value float64
	// Seconds is how long the epoch takes on a worker that is not slowed down.
	Seconds float64
	// Joules is what the epoch consumes; 0 if the benchmark does not tell.
	Joules float64
}

// Benchmark answers in place of a training script.
type Benchmark interface {
	// Measure is the epoch, counted from 1, of a training of the configuration
	// on the share of the data. Equal questions must get equal answers.
	Measure(configuration space.Configuration, epoch int, fraction float64) Measurement
}

// Noisy is a [Benchmark] whose trainings of one configuration differ by their
// seed. Measure is then what they come to on average: the true value.
type Noisy interface {
	Benchmark
	// MeasureSeeded is what Measure is, for a training with the seed.
	MeasureSeeded(configuration space.Configuration, epoch int, fraction float64, seed uint64) Measurement
}

// Options say how the study is run. All chances are between 0 and 1.
type Options struct {
	// Workers is how many trials run at once; 1 if 0.
	Workers int
	// Seed determines what goes wrong, and the search's seed where the
	// definition has none.
	Seed uint64
	// MaxCost ends the run when as many passes over the whole data (epochs
	// times data fraction) were trained; 0 means no bound.
	MaxCost float64
	// MaxSeconds ends the run at that time; 0 means no bound.
	MaxSeconds float64
	// Full is the budget at which an incumbent's True value is measured; zero
	// means that of the study's top rung.
	Full budget.Budget

	// Failures is the chance that the command fails in an epoch, Vanishings
	// that the worker does; another takes its place after a lease term.
	Failures, Vanishings float64
	// Stragglers is the chance that a lease is trained Slowdown times slower
	// than the benchmark says (4 if 0).
	Stragglers, Slowdown float64
	// CheckpointEvery is after how many epochs a trial takes a checkpoint; it
	// always takes one at the end of its budget. 0 means only there.
	CheckpointEvery int
	// LeaseSeconds is how long a lease lives without a heartbeat, in simulated
	// time; 60 if 0. Longer leases simulate faster.
	LeaseSeconds float64
	// Prior is what was measured elsewhere before the study began.
	Prior []protocol.Observation
}

// Point is the state of the study after one epoch was trained.
type Point struct {
	// Seconds is the simulated time.
	Seconds float64
	// Cost is the epochs trained so far, each times its data fraction,
	// including those that were lost and trained again.
	Cost float64
	// Trial is the number of the trial that was trained, Epoch its epoch.
	Trial, Epoch int
	// Incumbent is the number of the trial the study would recommend, or -1.
	Incumbent int
	// Value is the incumbent's recommended value, measured at whatever budget
	// it reached; True what it would have at the full budget. NaN without one.
	Value, True float64
	// Full is the best value that any trial was measured with at the full budget
	// so far; NaN before the first.
	Full float64
}

// Trace is what happened.
type Trace struct {
	// Points has an entry for each epoch, in the order of time.
	Points []Point
	// Study is how the service saw the study at the end of the run. It is not
	// over when a bound of the options ended the run.
	Study protocol.StudyView
	// Recommendation is the study's answer at the end.
	Recommendation protocol.Recommendation
	// Seconds is the simulated time at the end, Cost the data passes trained.
	Seconds, Cost float64
	// Failed, Vanished and Straggled count what went wrong.
	Failed, Vanished, Straggled int
	// Stopped counts the runs of trials that were ended by a stop directive.
	Stopped int
}

// At is the last point within the cost, or false before the first.
func (t Trace) At(cost float64) (Point, bool) {
	// Costs add up in binary, so a bound is met within a rounding error.
	return t.last(func(p Point) bool { return p.Cost <= cost*(1+1e-9) })
}

// AtSeconds is the last point within the simulated time, or false before the
// first.
func (t Trace) AtSeconds(seconds float64) (Point, bool) {
	return t.last(func(p Point) bool { return p.Seconds <= seconds })
}

func (t Trace) last(within func(Point) bool) (Point, bool) {
	for i := len(t.Points) - 1; i >= 0; i-- {
		if within(t.Points[i]) {
			return t.Points[i], true
		}
	}
	return Point{Incumbent: -1, Value: math.NaN(), True: math.NaN(), Full: math.NaN()}, false
}

// withDefaults fills in what was left 0, or names every fault.
func (o Options) withDefaults() (Options, error) {
	if o.Workers == 0 {
		o.Workers = 1
	}
	if o.Slowdown == 0 {
		o.Slowdown = 4
	}
	if o.LeaseSeconds == 0 {
		o.LeaseSeconds = 60
	}
	var faults []problem.Field
	require := func(ok bool, path string, value any, message string) {
		if !ok {
			faults = append(faults, problem.Field{Path: path, Value: value, Message: message})
		}
	}
	chance := func(path string, value float64) {
		require(value >= 0 && value <= 1, path, value, "must be between 0 and 1")
	}
	require(o.Workers > 0, "workers", o.Workers, "must be at least 1")
	require(o.MaxCost >= 0, "max_cost", o.MaxCost, "must be at least 0 (0 means no bound)")
	require(o.MaxSeconds >= 0, "max_seconds", o.MaxSeconds, "must be at least 0 (0 means no bound)")
	chance("failures", o.Failures)
	chance("vanishings", o.Vanishings)
	chance("stragglers", o.Stragglers)
	require(o.Slowdown >= 1, "slowdown", o.Slowdown, "must be at least 1")
	require(o.CheckpointEvery >= 0, "checkpoint_every", o.CheckpointEvery, "must be at least 0")
	require(o.LeaseSeconds >= 1, "lease_seconds", o.LeaseSeconds, "must be at least 1")
	if len(faults) > 0 {
		return o, problem.WithFields("the simulation's options are wrong", faults)
	}
	return o, nil
}
