package protocol

import (
	"time"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// What charts are drawn from. The lists stand beside each other, one entry for
// each trial, span or epoch: thousands of them fit into one answer.

// ColumnsQuery says which measurements are wanted.
type ColumnsQuery struct {
	// Rung is where they were made; nil: the highest one where five trials were
	// measured, which the answer is near, else the one with the most.
	Rung *int
	// Objective is the place of the objective that ranks them.
	Objective int
	// Limit bounds the trials in the answer (0: 2,000, at most 10,000).
	Limit int
}

// Columns are a study's measurements at one rung, without those of repeats.
// Only they compare: every trial had the same budget.
type Columns struct {
	Study string `json:"study"`
	// Sequence is the newest event that the columns contain.
	Sequence int64         `json:"sequence"`
	Rung     int           `json:"rung"`
	Budget   budget.Budget `json:"budget"`
	// Measured is how many trials were measured at each rung.
	Measured []int `json:"measured" doc:"how many trials were measured, by rung"`
	// Sample is there when the answer has not all trials of the rung.
	Sample *Sample `json:"sample,omitempty" doc:"how the trials were sampled; absent if all are included"`
	// Numbers are the trials, in order.
	Numbers []int `json:"numbers" doc:"the trials' numbers, in order"`
	// Ranks are their places among all trials measured at the rung, 1 for the
	// best: feasible trials first, then by the objective; NaN is last.
	Ranks []int `json:"ranks" doc:"places among all trials measured at the rung; 1 is the best"`
	// Values has a list for each objective.
	Values [][]trial.Float `json:"values" doc:"a list for each objective"`
	// Violations is by how much each trial misses the constraints; absent in a
	// study without constraints.
	Violations []trial.Float `json:"violations,omitempty"`
	// Parameters are the space's, in its order.
	Parameters []ParameterColumn `json:"parameters"`
	// Distribution is that of the objective over all trials of the rung.
	Distribution Distribution `json:"distribution"`
}

// Sample says which trials of many an answer has: the best, and of the others
// every so manieth by number.
type Sample struct {
	Of    int `json:"of" doc:"how many trials there are"`
	Best  int `json:"best" doc:"number of best trials included"`
	Every int `json:"every" doc:"of the other trials, one in this many is included"`
}

// ParameterColumn has the values of one parameter.
type ParameterColumn struct {
	Name string `json:"name"`
	// Choices are those of a categorical or an ordinal.
	Choices []space.Value `json:"choices,omitempty"`
	// Values are numbers; places in Choices, from 0, where there are choices; NaN
	// where a configuration does not have the parameter.
	Values []trial.Float `json:"values" doc:"numbers, or places in choices from 0; NaN where the configuration does not have the parameter"`
}

// Distribution is an empirical distribution function: the share of trials with
// a value that is at most this. Of more than 500 values it has evenly spaced ones.
type Distribution struct {
	Trials int           `json:"trials" doc:"trials with a finite value"`
	Values []trial.Float `json:"values"`
	Shares []float64     `json:"shares" doc:"shares of the trials with at most this value"`
}

// CurvesQuery says which learning curves are wanted.
type CurvesQuery struct {
	// Metric is what they are of; empty: the first objective, or where that is
	// a formula the first metric by name.
	Metric string
	// Limit bounds their number (0: 100, at most 500).
	Limit int
}

// Curves are learning curves of a study's trials.
type Curves struct {
	Study    string `json:"study"`
	Sequence int64  `json:"sequence"`
	Metric   string `json:"metric"`
	// Metrics are all that trials reported, sorted.
	Metrics []string `json:"metrics"`
	// Sample is there when the answer has not all trials that reported.
	Sample *Sample `json:"sample,omitempty"`
	// Curves go by number.
	Curves []Curve `json:"curves"`
}

// Curve is what one trial reported of the metric. Of more than 300 epochs it has
// evenly spaced ones, with the last.
type Curve struct {
	Number int `json:"number"`
	// Rank is the trial's on the leaderboard; 0 for one that has none.
	Rank   int           `json:"rank"`
	Rungs  []int         `json:"rungs" doc:"the rung that each epoch was trained for"`
	Epochs []int         `json:"epochs"`
	Values []trial.Float `json:"values"`
}

// Timeline says which trial ran where and when.
type Timeline struct {
	Study    string `json:"study"`
	Sequence int64  `json:"sequence"`
	// Start is the moment that the seconds count from, Seconds how long ago it is
	// (for a study that is over: how long before its end).
	Start   time.Time `json:"start"`
	Seconds float64   `json:"seconds" doc:"from start to now, or to the study's end"`
	// Cut is when the events begin that were looked at, in seconds; 0: all were.
	// What ended before is missing.
	Cut float64 `json:"cut" doc:"spans that ended before this time are left out; 0: none are"`
	// Workers are those of the spans, by first lease.
	Workers []TimelineWorker `json:"workers"`
	// Numbers, Workplaces and the rest have an entry for each span that a worker
	// had a trial, by its begin.
	Numbers    []int         `json:"numbers" doc:"the trials' numbers"`
	Workplaces []int         `json:"workplaces" doc:"places in workers, from 0"`
	Rungs      []int         `json:"rungs"`
	Begins     []float64     `json:"begins" doc:"seconds since start"`
	Ends       []float64     `json:"ends" doc:"seconds since start; for an open span, now"`
	Outcomes   []SpanOutcome `json:"outcomes"`
	// Reasons say why, where it was not the budget's end.
	Reasons []string `json:"reasons"`
}

// TimelineWorker is a worker that had trials of the study.
type TimelineWorker struct {
	ID string `json:"id"`
	// Host is its machine's name, as far as it is known.
	Host string `json:"host,omitempty"`
}

// SpanOutcome is how a worker's time with a trial ended.
type SpanOutcome string

// The outcomes.
const (
	SpanRunning   SpanOutcome = "running"   // it lasts
	SpanPaused    SpanOutcome = "paused"    // measured at its rung
	SpanCompleted SpanOutcome = "completed" // measured at the top rung
	SpanPruned    SpanOutcome = "pruned"    // stopped early
	SpanFailed    SpanOutcome = "failed"    // the user's command failed; it may be tried again
	SpanLost      SpanOutcome = "lost"      // the worker vanished with it
	SpanReturned  SpanOutcome = "returned"  // the worker gave it back, to go on later
	SpanCancelled SpanOutcome = "cancelled" // the study ended before it was tried, or the user stopped it
)

// PlanProgress compares a study's plan with what was done.
type PlanProgress struct {
	Study string `json:"study"`
	// Plan is what was expected before anything ran.
	Plan budget.Plan `json:"plan"`
	// Trials, Repeats, Epochs, DataPasses, Seconds and Joules are what there is so
	// far: Seconds and Joules summed over the trials.
	Trials     int     `json:"trials"`
	Repeats    int     `json:"repeats"`
	Epochs     int     `json:"epochs"`
	DataPasses float64 `json:"data_passes"`
	Seconds    float64 `json:"seconds"`
	Joules     float64 `json:"joules"`
	// EnergyMethod is how the joules were obtained; empty: they were not.
	EnergyMethod string          `json:"energy_method,omitempty"`
	Stages       []StageProgress `json:"stages"`
}

// StageProgress is what became of one rung's part of the plan. Repeats are not
// in it.
type StageProgress struct {
	Rung int `json:"rung"`
	// Planned is how many trials were expected there, Began how many trials of
	// the study began their life on this rung.
	Planned  int `json:"planned"`
	Began    int `json:"began"`
	Measured int `json:"measured"`
	// Active are on this rung with a worker, or wait for one.
	Active int `json:"active"`
	// Ended came to this rung and ended without a measurement there.
	Ended int `json:"ended" doc:"trials that failed, were lost, pruned or cancelled on this rung before a measurement"`
}
