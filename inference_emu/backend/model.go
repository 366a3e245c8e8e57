package backend

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

// FromGraph takes the features of a model from its graph; the accuracy is not
// in it.
func FromGraph(g graph.Graph) Model {
	cost := g.Cost(1)
	model := Model{Name: g.Name, Operations: float64(cost.Operations), Parameters: float64(cost.Parameters),
		WeightBytes: float64(cost.StoredBytes), ActivationBytes: float64(cost.ReadBytes) + float64(cost.WrittenBytes),
		PeakBytes: float64(cost.PeakActivationBytes), Layers: map[graph.Class]float64{}}
	for _, part := range cost.Classes {
		model.Layers[part.Class] = float64(part.Operators)
	}
	integer := 0.0
	for _, one := range g.Operators {
		if one.Type == graph.Int8 {
			integer += float64(one.Operations)
		}
	}
	if cost.Operations > 0 {
		model.Quantized = min(1, integer/float64(cost.Operations))
	}
	for _, input := range g.Inputs {
		model.InputElements += float64(input.Elements())
	}
	return model
}
