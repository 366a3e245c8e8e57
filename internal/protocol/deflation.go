package protocol

import (
	"time"

	"github.com/tandem-tune/tandem/study/definition"
)

// StudyDeflation says what trials of a study leave out of their data for studies of a
// higher priority, why, and what comes of it.
type StudyDeflation struct {
	Study    string `json:"study"`
	Priority int    `json:"priority"`
	// Accepts is what the study allows; absent where it allows nothing.
	Accepts *definition.Approximation `json:"accepts,omitempty"`
	// Drop is the share that a trial leaves out which begins now, Why a sentence on
	// that. Most is the largest one that the study allows, by what is known.
	Drop float64 `json:"drop" doc:"share of its rung's data that a trial leaves out if it starts now"`
	Most float64 `json:"most" doc:"the largest share that the study allows, given the estimated loss of its metric"`
	Why  string  `json:"why"`
	// Loss is how much worse the first objective comes out for Drop, LossBound what
	// it comes to at most with 95% confidence: estimates, absent where nothing is
	// known.
	Loss      *float64 `json:"loss,omitempty" doc:"estimated loss of the first objective"`
	LossBound *float64 `json:"loss_bound,omitempty" doc:"upper bound of that estimate, with 95% confidence"`
	// LossMeasured is what was lost by trials that were repeated with all data, in
	// the mean over LossTrials of them; absent where there is none.
	LossMeasured *float64 `json:"loss_measured,omitempty" doc:"loss measured on trials that were repeated with all data"`
	LossTrials   int      `json:"loss_trials,omitempty"`
	// Deflated is how many trials have left something out so far.
	Deflated int `json:"deflated" doc:"trials that left data out"`
	// Limits is what is wanted of its trials, LimitsWhy a sentence on how it is with
	// that. Met is what they met with lately; where there are limits, what still waits
	// or runs counts with what it took so far.
	Limits    *definition.ResponseSeconds `json:"limits,omitempty"`
	LimitsWhy string                      `json:"limits_why,omitempty" doc:"one sentence: how the limits are met, and the reaction"`
	Met       *ResponseTimes              `json:"met,omitempty" doc:"recent response times; with limits, waiting and running trials count with their time so far"`
	// Slots is how many trials the workers run at once.
	Slots int `json:"slots" doc:"trials that all workers run at once"`
	// Sprint is what is left for sprints on all workers that allow them, where the
	// study wants its trials to sprint; with nothing in it where none allows them.
	Sprint *SprintAccount `json:"sprint,omitempty" doc:"joules left for sprints on all workers"`
	// SprintAfter is after how many seconds a trial sprints that begins now, where the
	// server chooses that; absent: it does not sprint. SprintWhy is a sentence on it.
	SprintAfter *float64 `json:"sprint_after,omitempty" doc:"seconds after which a trial that starts now sprints, if the server chooses"`
	SprintWhy   string   `json:"sprint_why,omitempty"`
	// SprintSpeed is how many times as fast trials of the study are while they
	// sprint, as was seen; absent: it is not known yet.
	SprintSpeed *float64 `json:"sprint_speed,omitempty" doc:"measured speed of sprinting trials, relative to others"`
	// Chosen is when it was decided; absent where nothing was.
	Chosen *time.Time `json:"chosen,omitempty"`
}

// ResponseTimes are how long trials take from when they could begin to when they were
// trained, in seconds.
type ResponseTimes struct {
	Mean float64 `json:"mean"`
	// Tail is what 95% are within.
	Tail float64 `json:"tail"`
	// Trials is how many it is of.
	Trials int `json:"trials,omitempty"`
}
