package protocol

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/space"
)

// ImportanceQuery says what importance is asked for.
type ImportanceQuery struct {
	// Objective is the index of the objective, from 0.
	Objective int
	// Rung restricts the answer to one rung; nil is all of them.
	Rung *int
}

// Importance says which parameters made the good trials good, for each rung by
// itself: values of different rungs do not compare.
type Importance struct {
	Study string `json:"study"`
	// Method names how it was measured, with its paper.
	Method string `json:"method"`
	// Metric is the objective's.
	Metric string `json:"metric,omitempty" doc:"the objective"`
	// Rungs has the rungs with enough measurements, the highest first.
	Rungs []RungImportance `json:"rungs"`
	// Notes are plain sentences on how far the answer can be trusted.
	Notes []string `json:"notes"`
}

// RungImportance is the answer for the trials measured at one rung.
type RungImportance struct {
	Rung   int           `json:"rung"`
	Budget budget.Budget `json:"budget"`
	Trials int           `json:"trials" doc:"trials measured at the rung"`
	Best   int           `json:"best" doc:"how many of them count as good"`
	// Parameters has the most important first.
	Parameters []ParameterImportance `json:"parameters"`
}

// ParameterImportance is one parameter's part in what makes the good trials good.
type ParameterImportance struct {
	Name   string     `json:"name"`
	Kind   space.Kind `json:"kind"`
	Share  float64    `json:"share" doc:"its part; the shares sum to 1"`
	Chance float64    `json:"chance" doc:"probability of as much if the parameter did nothing; above 0.05 the share means nothing"`
}
