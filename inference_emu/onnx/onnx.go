// Package onnx answers: which graph is in this ONNX file?
//
// [Read] decodes the file at the level of the wire: what it needs are names,
// attributes and shapes, and the bytes of weights are stepped over, never
// copied. Shapes that the file does not give are inferred operator by operator.
//
// The package is pure, never opens what a file refers to, and is made for files
// that nobody vouches for: sizes are bounded and memory is proportional to the
// file. It holds for the operators that PyTorch, Keras and scikit-learn export.
package onnx

import (
	"github.com/tandem-tune/tandem/inference_emu/graph"

	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
)

// Options are what a file does not say.
type Options struct {
	// Dimensions are the sizes of symbolic dimensions by name: {"sequence": 128}.
	// One without a name is called after its input and place: "tokens:1". The
	// batch needs none: it is the first dimension where that is symbolic, or one
	// whose name begins with "batch", and a graph is for a batch of one.
	Dimensions map[string]int64
	// Limits bound what a file may ask for; those that are 0 have a default.
	Limits document.Limits
}

// Read gives the graph of an ONNX file, for a batch of one sample. Its errors
// are [problem.Invalid] or, where a limit was reached, [problem.Exhausted], and
// name the node and the reason.
func Read(file []byte, options Options) (graph.Graph, error) {
	limits := options.Limits.Complete()
	model, err := document.Read(file, limits)
	if err != nil {
		return graph.Graph{}, err
	}
	reader := newReader(model, options.Dimensions, limits)
	if err := reader.read(); err != nil {
		return graph.Graph{}, err
	}
	return reader.graph, reader.graph.Check()
}
