package protocol

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// Pareto is the answer of a study with several objectives: the trials that no
// other beats in all of them.
type Pareto struct {
	Study      string            `json:"study"`
	Objectives []ParetoObjective `json:"objectives"`
	// Rung and Budget are where the trials were measured: the highest rung that
	// has a feasible measurement.
	Rung   int           `json:"rung"`
	Budget budget.Budget `json:"budget"`
	// Measured is how many feasible trials were compared.
	Measured int `json:"measured" doc:"feasible trials that were compared"`
	// Trials is the front, the best compromise first.
	Trials []ParetoTrial `json:"trials"`
	// Why says in a sentence why the first of them is the best compromise.
	Why string `json:"why,omitempty" doc:"why the first trial of the front is the best compromise"`
	// Hypervolume is the volume between the front and the reference point, in
	// the product of the objectives' units; absent where it has none.
	Hypervolume *float64 `json:"hypervolume,omitempty" doc:"between the front and the references; absent if it cannot be computed"`
	// Notes are plain sentences on how far the answer can be trusted.
	Notes []string `json:"notes"`
}

// ParetoObjective is one objective, with the reference the hypervolume is
// measured from.
type ParetoObjective struct {
	Name      string               `json:"name"`
	Direction definition.Direction `json:"direction" enum:"maximize,minimize"`
	// Reference is the study file's, or else the worst value of the trials that
	// were compared; absent as long as there are none.
	Reference *float64 `json:"reference,omitempty"`
	// Given says that the reference is the study file's.
	Given bool `json:"given" doc:"the reference is the study file's, not the worst value so far"`
}

// ParetoTrial is a trial of the front.
type ParetoTrial struct {
	Trial  trial.ID `json:"trial_id"`
	Number int      `json:"number"`
	Rank   int      `json:"rank"`
	// Values has one entry for each objective.
	Values    []trial.Float       `json:"values"`
	Estimated bool                `json:"estimated,omitempty" doc:"joules that are an estimate went into a value"`
	Params    space.Configuration `json:"params"`
	// Repeated is there for a trial that was repeated; Values are its means.
	Repeated *Repeated `json:"repeated,omitempty"`
}
