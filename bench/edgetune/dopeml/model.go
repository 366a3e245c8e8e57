package dopeml

import (
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// Model is what the predictors know of a model: what one inference of one
// sample does. Zeros are for what is not known, and no model of the same
// comparison should know it then.
type Model struct {
	Name string `json:"name"`
	// Operations are floating-point or integer operations, a multiplication and
	// an addition counting as two.
	Operations float64 `json:"operations"`
	Parameters float64 `json:"parameters"`
	// WeightBytes is the size of the parameters as they are stored,
	// ActivationBytes what is read and written between operators.
	WeightBytes     float64 `json:"weight_bytes"`
	ActivationBytes float64 `json:"activation_bytes"`
	// PeakBytes is the most memory that activations need at one time.
	PeakBytes float64 `json:"peak_bytes"`
	// InputElements is the size of one sample.
	InputElements float64 `json:"input_elements"`
	// Layers counts the operators of each class (see inference_emu/graph.Class).
	Layers map[graph.Class]float64 `json:"layers,omitempty"`
	// Quantized is the share of the operations that work on integers, 0 to 1.
	Quantized float64 `json:"quantized"`
	// Accuracy is the model's own, 0 to 1, where it is known.
	Accuracy float64 `json:"accuracy"`
}
