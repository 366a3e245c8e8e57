package protocol

import "github.com/tandem-tune/tandem/trial"

// Measurements are what a study's trials were measured to, in the order in which
// that happened. Repeats are not among them: they measure a configuration again
// that was measured before.
type Measurements struct {
	Study string `json:"study" doc:"the study's name"`
	// Results has the earliest first. Where there are more than were asked for, it
	// has some of each rung: all of a rung that has few, and of the others, from
	// stretches of time with equally many results, the best one and the middle one.
	Results []Measurement `json:"results" doc:"the earliest first; where there are more than were asked for, the best and the middle one of each stretch of time, by rung"`
	// Total is how many there are.
	Total int `json:"total" doc:"how many results there are"`
	// Untimed is how many of them have no time, because an earlier version stored
	// them.
	Untimed int `json:"untimed,omitempty" doc:"results of an earlier version, whose time is not known"`
	// Leaders has each change of the leader: the best value of the first objective
	// on the highest rung measured by then, feasible ones first. No choice is made
	// among them.
	Leaders []Leader `json:"leaders" doc:"each change of the leader, the earliest first"`
	// Rungs has one entry for each rung of the study, the cheapest first.
	Rungs []RungTally `json:"rungs"`
	// Sequence is the last event that is contained.
	Sequence int64 `json:"sequence" doc:"the last event that is contained"`
}

// Measurement is one trial's result at one rung.
type Measurement struct {
	Number int `json:"number" doc:"the trial's"`
	Rung   int `json:"rung"`
	// Seconds is when it was measured, since the study was created.
	Seconds *float64 `json:"seconds,omitempty" doc:"since the study was created; absent where an earlier version stored it"`
	// Values has one value for each objective.
	Values    []trial.Float `json:"values"`
	Violation trial.Float   `json:"violation,omitempty" doc:"by how much it misses the constraints, in parts of their bounds"`
	Promoted  bool          `json:"promoted,omitempty" doc:"the trial went up from this rung"`
}

// Leader is a measurement that took the lead in the first objective.
type Leader struct {
	Seconds float64     `json:"seconds" doc:"since the study was created"`
	Number  int         `json:"number" doc:"the trial's"`
	Rung    int         `json:"rung"`
	Value   trial.Float `json:"value"`
}

// RungTally counts what is, and what was, on one rung.
type RungTally struct {
	Active   int `json:"active" doc:"trials that a worker has or that wait for one"`
	Paused   int `json:"paused" doc:"trials measured there that may still be promoted"`
	Measured int `json:"measured" doc:"trials that were ever measured there"`
	Promoted int `json:"promoted" doc:"trials that went up from there"`
	// Best is the best value of the first objective; absent before the first
	// number.
	Best *trial.Float `json:"best,omitempty" doc:"best value of the first objective there"`
}
