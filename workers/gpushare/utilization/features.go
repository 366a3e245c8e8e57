package utilization

import (
	"math"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// Features are what is known of a training before it ever ran: table 2 of the
// paper, and the bytes and the shape of the work beside it.
type Features struct {
	// Convolutions, Linear, Activations and Others are numbers of layers.
	// Depthwise convolutions (a group for each channel) are also counted by
	// themselves, since they compute little for what they read. A layer of
	// recurrent units counts as two linear ones and an activation for each gate
	// (section 5).
	Convolutions int `json:"convolutions"`
	Depthwise    int `json:"depthwise"`
	Linear       int `json:"linear"`
	Activations  int `json:"activations"`
	Others       int `json:"others"`
	// ModelBytes is the size of the weights, Operations the floating-point ones
	// of a forward pass of the batch, a multiplication and an addition counting
	// as two.
	ModelBytes int64 `json:"model_bytes"`
	Operations int64 `json:"operations"`
	// MovedBytes are read and written by a forward pass of the batch, and
	// KeptBytes are written by it: what a training keeps for the way back.
	MovedBytes int64 `json:"moved_bytes"`
	KeptBytes  int64 `json:"kept_bytes"`
	Batch      int64 `json:"batch"`
}

// gates are the activations of a layer of recurrent units.
func gates(kind string) int {
	switch kind {
	case "LSTM":
		return 5
	case "GRU":
		return 3
	}
	return 1
}

// Describe counts what an architecture does with a batch; a batch below one is
// one.
func Describe(g graph.Graph, batch int64) Features {
	batch = max(batch, 1)
	cost := g.Cost(batch)
	f := Features{
		ModelBytes: cost.StoredBytes, Operations: cost.Operations, KeptBytes: cost.WrittenBytes,
		MovedBytes: graph.Sum(cost.ReadBytes, graph.Sum(cost.WrittenBytes, cost.WeightBytes)), Batch: batch,
	}
	for _, op := range g.Operators {
		switch op.Class {
		case graph.Convolution:
			f.Convolutions++
		case graph.Depthwise:
			f.Convolutions++
			f.Depthwise++
		case graph.Linear:
			f.Linear++
		case graph.Recurrent:
			f.Linear += 2
			f.Activations += gates(op.Kind)
		case graph.Activation:
			f.Activations++
		default:
			if !op.View {
				f.Others++
			}
		}
	}
	return f
}

// Outline is an architecture as far as its features go, for any batch: small, where
// a graph may have thousands of operators.
type Outline struct {
	// ModelBytes is the size of the weights.
	ModelBytes int64
	one, two   Features
}

// OutlineOf is the outline of an architecture.
func OutlineOf(g graph.Graph) Outline {
	one := Describe(g, 1)
	return Outline{ModelBytes: one.ModelBytes, one: one, two: Describe(g, 2)}
}

// With is what [Describe] says with the batch: each feature is a part that does not
// depend on the batch, and one for each sample.
func (o Outline) With(batch int64) Features {
	f, more := o.one, max(batch, 1)-1
	grown := func(one, two int64) int64 { return graph.Sum(one, graph.Product(two-one, more)) }
	f.ModelBytes, f.Batch = o.ModelBytes, more+1
	f.Operations = grown(o.one.Operations, o.two.Operations)
	f.MovedBytes, f.KeptBytes = grown(o.one.MovedBytes, o.two.MovedBytes), grown(o.one.KeptBytes, o.two.KeptBytes)
	return f
}

// vector is the features as the models see them. Sizes are logarithms: what
// doubles counts as much wherever it starts.
func (f Features) vector() []float64 {
	layers := max(1, f.Convolutions+f.Linear+f.Activations+f.Others)
	operations := float64(f.Operations)
	return []float64{
		float64(f.Convolutions), float64(f.Depthwise), float64(f.Linear), float64(f.Activations), float64(f.Others),
		math.Log1p(float64(f.ModelBytes)), math.Log1p(operations),
		math.Log1p(operations / float64(layers)), math.Log1p(operations / float64(max(1, f.MovedBytes))),
		math.Log1p(float64(f.MovedBytes)), math.Log1p(float64(f.KeptBytes)), math.Log1p(float64(f.Batch)),
	}
}
