package protocol

import (
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Preview is what a study file comes to, for an editor that asks while it is
// written: its plan, or what is wrong with it.
type Preview struct {
	// Plan is there for a file without faults.
	Plan *budget.Plan `json:"plan,omitempty" doc:"what the study will do; absent where the file has faults"`
	// Faults are all that were found, in the order of their lines.
	Faults []problem.Field `json:"faults" doc:"faults of the file; empty: it can be created"`
}
