package protocol

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// Trajectory is how a study came to its best value: the leader against what had
// been spent by then, and how the values measured at each rung are distributed.
// Studies are compared by it. It is about the first objective.
type Trajectory struct {
	Study     string               `json:"study"`
	Metric    string               `json:"metric" doc:"the first objective"`
	Direction definition.Direction `json:"direction"`
	// Points has one for each time another value came to lead, in order. A value
	// of a higher rung leads before any of a lower one, so it may be worse.
	Points []TrajectoryPoint `json:"points"`
	// Spent is what was spent until now.
	Spent Spent `json:"spent"`
	// EnergyMethod is how the joules were obtained; empty where none were.
	EnergyMethod string `json:"energy_method,omitempty" doc:"how the joules were obtained; what starts with estimate is one"`
	// Measurements is how many results the points were chosen from.
	Measurements int `json:"measurements"`
	// Distributions has the rungs with measurements, the lowest first.
	Distributions []RungDistribution `json:"distributions"`
	Notes         []string           `json:"notes"`
}

// Spent is what a study's trials had used at some moment. What a training uses
// counts when its run ends or changes hands.
type Spent struct {
	Seconds         float64 `json:"seconds" doc:"since the study was created, pauses included"`
	DataPasses      float64 `json:"data_passes" doc:"passes over the whole data"`
	TrainingSeconds float64 `json:"training_seconds" doc:"summed over the trials"`
	Joules          float64 `json:"joules"`
}

// TrajectoryPoint is a value that came to lead, and what was spent by then.
type TrajectoryPoint struct {
	Spent
	Trial     int         `json:"trial"`
	Rung      int         `json:"rung"`
	Value     trial.Float `json:"value"`
	Violation trial.Float `json:"violation,omitempty" doc:"by how much it misses the constraints; absent for a feasible one"`
}

// RungDistribution is how the values measured at one rung are distributed.
type RungDistribution struct {
	Rung   int           `json:"rung"`
	Budget budget.Budget `json:"budget"`
	Trials int           `json:"trials" doc:"trials measured at the rung"`
	// NotFinite is how many of the values are NaN or infinite: these are not among
	// Values.
	NotFinite int `json:"not_finite"`
	// Values are the others in ascending order; of more than 200, as many evenly
	// spaced quantiles, the lowest and the highest among them.
	Values []float64 `json:"values"`
}
