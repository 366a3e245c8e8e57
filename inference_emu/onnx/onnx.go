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
	"github.com/tandem-tune/tandem/internal/problem"
)

// Options are what a file does not say.
type Options struct {
	// Dimensions are the sizes of symbolic dimensions by name: {"sequence": 128}.
	// One without a name is called after its input and place: "tokens:1". The
	// batch needs none: it is the first dimension where that is symbolic, or one
	// whose name begins with "batch", and a graph is for a batch of one.
	Dimensions map[string]int64
	// Limits bound what a file may ask for; those that are 0 have a default.
	Limits Limits
}

// Limits bound what a file may ask for.
type Limits struct {
	Bytes      int   // of the file, 2 GiB if 0: the most that the format allows
	Nodes      int   // operators, 100,000 if 0
	Tensors    int   // stored ones, 100,000 if 0
	Dimensions int   // of a tensor, 16 if 0
	Elements   int64 // of a tensor, 2^40 if 0
	Name       int   // bytes of a name, 4096 if 0
	Folded     int   // elements of a tensor whose values are followed, 4096 if 0
}

// totalFolded bounds the values that are followed in one file, together.
const totalFolded = 1 << 20

func (l Limits) complete() Limits {
	for _, one := range []struct {
		limit    *int
		standard int
	}{{&l.Bytes, 1<<31 - 1}, {&l.Nodes, 100_000}, {&l.Tensors, 100_000}, {&l.Dimensions, 16}, {&l.Name, 4096}, {&l.Folded, 4096}} {
		if *one.limit <= 0 {
			*one.limit = one.standard
		}
	}
	if l.Elements <= 0 || l.Elements > 1<<40 {
		l.Elements = 1 << 40
	}
	return l
}

// Read gives the graph of an ONNX file, for a batch of one sample. Its errors
// are [problem.Invalid] or, where a limit was reached, [problem.Exhausted], and
// name the node and the reason.
func Read(file []byte, options Options) (graph.Graph, error) {
	limits := options.Limits.complete()
	if len(file) > limits.Bytes {
		return graph.Graph{}, problem.New(problem.Exhausted, "the file has %d bytes, at most %d are read", len(file), limits.Bytes)
	}
	decoder := decoder{limits: limits}
	model, err := decoder.model(file)
	if err != nil {
		return graph.Graph{}, err
	}
	reader := newReader(model, options.Dimensions, limits)
	if err := reader.read(); err != nil {
		return graph.Graph{}, err
	}
	return reader.graph, reader.graph.Check()
}
