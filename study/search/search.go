// Package search decides which configuration comes next, and which trial goes on.
//
// A [Method] is a deterministic state machine: events in, actions out, and a
// JSON snapshot. The same program, settings and events give the same actions bit
// for bit, whatever the clock or the number of workers: this is what makes a
// study replayable. (Programs built for different processors may differ in the
// last bit of an exponential.) A method does no I/O, holds no clock and takes
// its randomness from the seed in its settings.
//
// Its one promise to the study, whatever the promotion: a [Request] is never
// answered with [Wait] unless no trial is left to create and one is still out
// with a worker, so a search cannot dead-lock.
package search

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/cmaes"
	"github.com/tandem-tune/tandem/study/search/prior"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Settings is everything a method is made from.
type Settings struct {
	// Method is the registered name: "bohb", "tpe", "cma-es", "gp", "random",
	// "sobol" or "grid".
	Method string `json:"method"`
	// Seed determines every random draw.
	Seed uint64 `json:"seed"`
	// Space is what to draw from.
	Space space.Space `json:"space"`
	// Rungs is the ladder; at least one.
	Rungs []budget.Rung `json:"rungs"`
	// Eta is the reduction factor between rungs, at least 2.
	Eta int `json:"eta"`
	// Promotion is how trials go up the ladder; not set, it is asynchronous.
	Promotion budget.Promotion `json:"promotion,omitempty"`
	// Brackets bounds how many starting rungs are used (Hyperband's brackets);
	// 0 means all, and is all there is without promotion.
	Brackets int `json:"brackets"`
	// EarlyStopping stops trials while they train; nil means never, and then
	// the search takes no [Reported].
	EarlyStopping *stopping.EarlyStopping `json:"early_stopping,omitempty"`
	// Repeats trains the best again before the search finishes; nil means never.
	Repeats *Repeats `json:"repeats,omitempty"`
	// MaxTrials is how many configurations may be created; 0 means no bound.
	// Repeats do not count.
	MaxTrials int `json:"max_trials"`
	// RandomFraction is the share of configurations drawn uniformly by a
	// model-based method (BOHB's ρ, 1/3 by default).
	RandomFraction float64 `json:"random_fraction"`
	// Learning is what the models of bohb and tpe know; not set, it is one rung.
	Learning Learning `json:"learning,omitempty"`
	// GridPoints is how many points the grid takes of each continuous range.
	GridPoints int `json:"grid_points"`
	// Restarts is how cma-es goes on when it has arrived; not set, it is IPOP.
	Restarts cmaes.Restarts `json:"restarts,omitempty"`
	// Maximize holds one entry for each objective.
	Maximize []bool `json:"maximize"`
}

// Learning names from which outcomes a model of one rung learns.
type Learning string

// What there is to learn from. The zero value means [OneRung]: studies that were
// stored before there were two lack it, and go on as they began.
const (
	// OneRung is the outcomes at the model's rung: of what survived up to there.
	OneRung Learning = "one_rung"
	// LowerRungs is what was bad at lower rungs besides.
	LowerRungs Learning = "lower_rungs"
)

// Known reports whether there is such a learning.
func (l Learning) Known() bool { return l == OneRung || l == LowerRungs }

// EventKind names an event.
type EventKind string

// The events a method sees.
const (
	// Request: a worker is free. Answered with exactly one action.
	Request EventKind = "request"
	// Measured: Trial completed Rung with Values. Answered with no action.
	Measured EventKind = "measured"
	// Failed: Trial will never complete Rung (the user's command failed for good, or
	// its workers lost it too often). Answered with no action.
	Failed EventKind = "failed"
	// Enqueued: somebody wants Configuration tried before anything the method
	// proposes, or, with RetryOf, that of a failed trial. What it lacks is drawn, and
	// what does not exist in it is left out. Answered with no action.
	Enqueued EventKind = "enqueued"
	// Reported: Trial has Values after Epoch of Rung, before the rung's last.
	// Sent only when the settings have an early-stopping rule, in any order;
	// the first value of an epoch stays. Answered with a [Stop] of the trial,
	// which is then over, or with no action.
	Reported EventKind = "reported"
	// Prior: Prior was measured elsewhere. It comes before the first trial and
	// only changes what is proposed. Answered with no action.
	Prior EventKind = "prior"
	// Extended: MaxTrials configurations may be created from now on. It comes at any
	// time, also behind a [Finish]. Answered with no action. Settings with which a
	// snapshot from behind it is restored have the new bound.
	Extended EventKind = "extended"
)

// Event is one input of a method.
type Event struct {
	Kind  EventKind `json:"kind"`
	Trial int       `json:"trial"` // the trial's number in its study, from 0 in the order of Create
	Rung  int       `json:"rung"`
	// Epoch belongs to Reported.
	Epoch int `json:"epoch,omitempty"`
	// Values has one entry for each objective; NaN never wins.
	Values []trial.Float `json:"values,omitempty"`
	// Violation is by how much the outcome misses the study's constraints: 0
	// for a feasible one. Infinity is one that cannot be told.
	Violation trial.Float `json:"violation,omitempty"`
	// Configuration belongs to Enqueued; parts may be missing.
	Configuration space.Configuration `json:"params,omitempty"`
	// RetryOf belongs to Enqueued: the failed trial that is tried again, once.
	RetryOf *int `json:"retry_of,omitempty"`
	// Prior belongs to Prior; all such events of a search have at most MaxPrior.
	Prior []Observation `json:"prior,omitempty"`
	// MaxTrials belongs to Extended.
	MaxTrials int `json:"max_trials,omitempty"`
}

// Observation is a result that was measured elsewhere.
type Observation = prior.Observation

// ActionKind names an action.
type ActionKind string

// The actions a method answers a [Request] with, and [Stop].
const (
	// Create: start a new trial with the configuration on the rung.
	Create ActionKind = "create"
	// Promote: resume the trial, which was measured, on the next rung.
	Promote ActionKind = "promote"
	// Wait: nothing to do until a trial now out with a worker is measured or fails.
	Wait ActionKind = "wait"
	// Finish: the search is over; nothing will be asked again, unless it is [Extended].
	Finish ActionKind = "finish"
	// Stop: the trial that has just reported trains no further, at no rung: it
	// was beaten. It answers a [Reported].
	Stop ActionKind = "stop"
)

// Action is one decision of a method.
type Action struct {
	Kind ActionKind `json:"kind"`
	// Trial is the number of the trial to create (the next free one, from 0) or
	// to promote, Rung the rung it then goes to; or the one to stop, and its rung.
	Trial int `json:"trial"`
	Rung  int `json:"rung"`
	// Configuration and Origin ("random", "model", "grid", "sobol",
	// "enqueued", "prior", "expected",
	// "repeat") belong to Create.
	Configuration space.Configuration `json:"params,omitempty"`
	Origin        string              `json:"origin,omitempty"`
	// RepeatOf is the number of the trial whose configuration is trained again,
	// from scratch; nil for all other actions. A repeat is a measurement of that
	// trial: it is never promoted or stopped, and nothing is ranked by it.
	RepeatOf *int `json:"repeat_of,omitempty"`
	// RetryOf is the number of the failed trial that a Create tries again; nil for
	// all others. To the search it is a trial like others.
	RetryOf *int `json:"retry_of,omitempty"`
	// Reason says why in one sentence, for the trial's history.
	Reason string `json:"reason,omitempty"`
}
