package protocol

import (
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// MaxPrior is how many results of elsewhere a study takes.
const MaxPrior = 2000

// Observation is a result that was measured elsewhere, for a study to begin
// with: by another tool, or in an earlier study of another server.
type Observation struct {
	Params space.Configuration `json:"params" doc:"what it was measured with; parameters may be missing"`
	// Values has one entry for each objective of the study, in its direction.
	Values []trial.Float `json:"values" minItems:"1" maxItems:"64" doc:"one for each objective of the study, in its direction"`
	// Epochs and DataFraction are what it was trained with. Unknown epochs (0)
	// count as the full budget, an unknown fraction (0) as all of the data.
	Epochs       float64 `json:"epochs,omitempty" minimum:"0" maximum:"1000000000" doc:"epochs it was trained for; 0 or absent: unknown, taken as the full budget"`
	DataFraction float64 `json:"data_fraction,omitempty" minimum:"0" maximum:"1" doc:"share of the data; 0 or absent: all"`
	// Source names where it comes from: each source is put to the test by itself.
	Source string `json:"source,omitempty" maxLength:"128" doc:"where it comes from; each source is put to the test by itself"`
}
