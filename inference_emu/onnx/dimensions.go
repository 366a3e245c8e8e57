package onnx

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

// fixed is how many samples the file takes at a time, the first dimension of its
// first input; 0 if any input leaves the batch open.
func (b binding) fixed(inputs []graph.Tensor) int64 {
	if b.open || len(inputs) == 0 || len(inputs[0].Shape) == 0 {
		return 0
	}
	return inputs[0].Shape[0]
}

// binding gives symbolic dimensions their sizes.
type binding struct {
	given  map[string]int64
	batch  map[string]bool // names of the batch
	open   bool            // whether any input leaves the batch open
	limits document.Limits
}

// bind finds the names of the batch among the inputs.
func bind(inputs []document.ValueInfo, given map[string]int64, limits document.Limits) binding {
	b := binding{given: given, batch: map[string]bool{}, limits: limits}
	for _, input := range inputs {
		at := b.batchAt(input)
		b.open = b.open || at >= 0
		if at >= 0 && input.Dims[at].Name != "" {
			b.batch[input.Dims[at].Name] = true
		}
	}
	return b
}

// batchAt is the dimension of an input that grows with the batch, -1 if none.
func (b binding) batchAt(input document.ValueInfo) int {
	symbolic := func(at int) bool {
		dim := input.Dims[at]
		_, given := b.given[dim.Name]
		_, placed := b.given[place(input.Name, at)]
		return dim.Size < 0 && !given && !placed
	}
	for at, dim := range input.Dims {
		if symbolic(at) && (strings.HasPrefix(strings.ToLower(dim.Name), "batch") || b.batch[dim.Name]) {
			return at
		}
	}
	if len(input.Dims) > 0 && symbolic(0) {
		return 0
	}
	return -1
}

func place(name string, at int) string { return fmt.Sprintf("%s:%d", name, at) }

// input is an input of the graph with all sizes, for one sample. It grows with
// the batch if a dimension of it does, or if its first dimension is fixed: a
// file that was exported with a fixed batch.
func (b binding) input(info document.ValueInfo) (graph.Tensor, error) {
	if !info.Shape {
		return graph.Tensor{}, problem.New(problem.Invalid, "input %q is not a tensor with a shape", info.Name)
	}
	batch := b.batchAt(info)
	tensor := graph.Tensor{Name: info.Name, Type: info.Kind, Shape: make([]int64, len(info.Dims)), Batched: len(info.Dims) > 0}
	var open []problem.Field
	for at, dim := range info.Dims {
		size := dim.Size
		switch {
		case at == batch:
			size = 1
		case size < 0:
			given, err := b.size(info, at)
			var known *problem.Error
			if errors.As(err, &known) && len(known.Fields) > 0 {
				open = append(open, known.Fields...)
			} else if err != nil {
				return graph.Tensor{}, err
			}
			size = given
		}
		tensor.Shape[at] = size
	}
	if len(open) > 0 {
		return graph.Tensor{}, problem.WithFields("the file leaves dimensions open: export it with fixed ones, but for the batch", open)
	}
	if err := document.CheckShape(tensor.Shape, b.limits); err != nil {
		return graph.Tensor{}, document.Within(err, "input %q", info.Name)
	}
	return tensor, nil
}

// size of a symbolic dimension that is not the batch's.
func (b binding) size(info document.ValueInfo, at int) (int64, error) {
	name := info.Dims[at].Name
	size, known := b.given[name]
	if !known || name == "" {
		name = place(info.Name, at)
		size, known = b.given[name]
	}
	if !known && info.Dims[at].Name != "" {
		name = info.Dims[at].Name
		if b.batch[name] {
			return 1, nil
		}
	}
	if !known {
		return 0, problem.WithFields("the file leaves a dimension open", []problem.Field{{Path: info.Name,
			Message: fmt.Sprintf("dimension %d is %s: give the size of %q, such as %s=128", at, info.Dims[at].Open(), name, name)}})
	}
	if size < 1 {
		return 0, problem.New(problem.Invalid, "dimension %q has size %d: at least 1", name, size)
	}
	return size, nil
}

// declared is the shape that the file gives for a tensor inside the graph, nil
// if it gives none that can be used.
func (b binding) declared(info document.ValueInfo) []int64 {
	if !info.Shape {
		return nil
	}
	shape := make([]int64, len(info.Dims))
	for at, dim := range info.Dims {
		size := dim.Size
		if size < 0 {
			size = b.given[dim.Name]
			if b.batch[dim.Name] || (at == 0 && size == 0 && b.open) {
				size = 1
			}
			if size < 1 {
				return nil
			}
		}
		shape[at] = size
	}
	if document.CheckShape(shape, b.limits) != nil {
		return nil
	}
	return slices.Clip(shape)
}
