// Package graphtest builds graphs in code, for tests.
package graphtest

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Builder makes graphs in code. Its methods take and return tensors, whose
// shapes are known at once, and add one operator each; after the first fault
// they do nothing, and [Builder.Graph] returns it. Shapes are those of a batch
// of one sample: [1, channels, height, width].
type Builder struct {
	graph graph.Graph
	err   error
	count map[string]int
}

// NewBuilder starts an empty graph.
func NewBuilder(name string) *Builder {
	return &Builder{graph: graph.Graph{Name: name, Tensors: map[string]graph.Tensor{}}, count: map[string]int{}}
}

// Input declares an input of the graph.
func (b *Builder) Input(name string, t graph.Type, shape ...int64) graph.Tensor {
	tensor := graph.Tensor{Name: name, Type: t, Shape: shape, Batched: true}
	b.graph.Inputs = append(b.graph.Inputs, tensor)
	b.graph.Tensors[name] = tensor
	return tensor
}

// Output declares outputs of the graph; without any, what no operator reads is
// the output.
func (b *Builder) Output(tensors ...graph.Tensor) {
	b.graph.Outputs = append(b.graph.Outputs, tensors...)
}

// Err is the first fault.
func (b *Builder) Err() error { return b.err }

// Graph is what was built, checked.
func (b *Builder) Graph() (graph.Graph, error) {
	if b.err != nil {
		return graph.Graph{}, b.err
	}
	g := b.graph
	if len(g.Outputs) == 0 {
		read := map[string]bool{}
		for _, op := range g.Operators {
			for _, name := range op.Inputs {
				read[name] = true
			}
		}
		for _, op := range g.Operators {
			for _, name := range op.Outputs {
				if !read[name] {
					g.Outputs = append(g.Outputs, g.Tensors[name])
				}
			}
		}
	}
	return g, g.Check()
}

// Add appends an operator that was made elsewhere with its outputs, and names
// what has no name. It returns the outputs.
func (b *Builder) Add(op graph.Operator, outputs ...graph.Tensor) []graph.Tensor {
	if op.Name == "" {
		op.Name = fmt.Sprintf("%s.%d", op.Kind, b.count[op.Kind])
		b.count[op.Kind]++
	}
	outputs = slices.Clone(outputs)
	op.Outputs = make([]string, len(outputs))
	for i := range outputs {
		if outputs[i].Name == "" {
			outputs[i].Name = fmt.Sprintf("%s:%d", op.Name, i)
		}
		op.Outputs[i] = outputs[i].Name
		b.graph.Tensors[outputs[i].Name] = outputs[i]
	}
	for i := range op.Weights {
		if op.Weights[i].Name == "" {
			op.Weights[i].Name = fmt.Sprintf("%s.weight.%d", op.Name, op.Weights[i].Position)
		}
	}
	b.graph.Operators = append(b.graph.Operators, op)
	return outputs
}

// one adds an operator with one output, or keeps the fault.
func (b *Builder) one(op graph.Operator, output graph.Tensor, err error) graph.Tensor {
	if b.err != nil {
		return graph.Tensor{}
	}
	if err != nil {
		b.err = problem.New(problem.Invalid, "operator %d of graph %q: %w", len(b.graph.Operators), b.graph.Name, err)
		return graph.Tensor{}
	}
	return b.Add(op, output)[0]
}

// fault keeps the first one.
func (b *Builder) fault(format string, args ...any) graph.Tensor {
	return b.one(graph.Operator{}, graph.Tensor{}, fmt.Errorf(format, args...))
}
