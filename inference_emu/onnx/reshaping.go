package onnx

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

// view emits the input with another shape.
func (s *step) view(shape []int64) error {
	if graph.Product(shape...) != s.inputs[0].Elements() {
		return problem.New(problem.Invalid, "shape %v does not have the %d elements of %v", shape, s.inputs[0].Elements(), s.inputs[0].Shape)
	}
	op, output := graph.NewView(s.node.Kind, s.inputs[0].operand(), shape)
	return s.emit(op, output)
}

func reshape(s *step) error {
	wanted := s.integers("shape") // version 1
	if len(s.node.Inputs) > 1 {
		var err error
		if wanted, err = s.numbers(1); err != nil {
			return err
		}
	}
	if len(wanted) > s.reader.limits.Dimensions {
		return document.Exhausted("dimensions in a tensor", s.reader.limits.Dimensions)
	}
	shape, open := slices.Clone(wanted), -1
	known := int64(1)
	for i, size := range shape {
		if size == 0 && s.integer("allowzero", 0) == 0 {
			if i >= len(s.inputs[0].Shape) {
				return problem.New(problem.Invalid, "shape %v takes dimension %d of %v, which is not there", wanted, i, s.inputs[0].Shape)
			}
			shape[i] = s.inputs[0].Shape[i]
		}
		switch {
		case shape[i] == -1 && open < 0:
			open = i
		case shape[i] < 0:
			return problem.New(problem.Invalid, "shape %v: at most one size may be -1, none less", wanted)
		default:
			known = graph.Product(known, shape[i])
		}
	}
	if open >= 0 {
		if known == 0 || s.inputs[0].Elements()%known != 0 {
			return problem.New(problem.Invalid, "shape %v does not fit %v for a batch of one. A size that holds the batch must be -1 or computed: was the model exported with another fixed batch?", wanted, s.inputs[0].Shape)
		}
		shape[open] = s.inputs[0].Elements() / known
	}
	return s.view(shape)
}

func flatten(s *step) error {
	shape := s.inputs[0].Shape
	at := s.integer("axis", 1)
	if at < 0 {
		at += int64(len(shape))
	}
	if at < 0 || at > int64(len(shape)) {
		return problem.New(problem.Invalid, "axis %d is none of %v", at, shape)
	}
	return s.view([]int64{graph.Product(shape[:at]...), graph.Product(shape[at:]...)})
}

func squeeze(s *step) error {
	input := s.inputs[0].Shape
	axes, err := s.axesOf(len(input))
	if err != nil {
		return err
	}
	all := s.noAxes()
	shape := []int64{}
	for i, size := range input {
		if !slices.Contains(axes, i) || (all && size != 1) {
			shape = append(shape, size)
		}
	}
	return s.view(shape)
}

func unsqueeze(s *step) error {
	given, err := s.listed(1, "axes")
	if err != nil {
		return err
	}
	input := s.inputs[0].Shape
	rank := len(input) + len(given)
	if rank > s.reader.limits.Dimensions {
		return document.Exhausted("dimensions in a tensor", s.reader.limits.Dimensions)
	}
	added := make([]bool, rank)
	for _, one := range given {
		at, err := axis(one, rank)
		if err != nil {
			return err
		}
		if added[at] {
			return problem.New(problem.Invalid, "axes %v: one is there twice", given)
		}
		added[at] = true
	}
	shape := make([]int64, 0, rank)
	next := 0
	for _, one := range added {
		if one {
			shape = append(shape, 1)
			continue
		}
		shape = append(shape, input[next])
		next++
	}
	return s.view(shape)
}

func identity(s *step) error {
	if s.node.Kind == "Dropout" && len(s.node.Outputs) > 1 { // and what it would drop: nothing
		output := s.like(s.inputs[0].Tensor, s.inputs[0].Shape)
		mask := output
		mask.Type = graph.Bool
		return s.emit(graph.NewMovement(s.node.Kind, s.pick(0), output, mask), output, mask)
	}
	return s.view(s.inputs[0].Shape)
}

func transpose(s *step) error {
	var order []int
	for _, one := range s.integers("perm") {
		if one < 0 || one >= int64(len(s.inputs[0].Shape)) {
			return problem.New(problem.Invalid, "perm %v is no order of %v", s.integers("perm"), s.inputs[0].Shape)
		}
		order = append(order, int(one))
	}
	return s.emitOne(graph.NewTransposition(s.inputs[0].operand(), order))
}

// likeFirst copies its first input and changes some elements.
func likeFirst(s *step) error {
	return s.copied(s.inputs[0].Shape)
}

func depthToSpace(s *step) error {
	return s.blocks(func(shape []int64, block int64) bool {
		if shape[1]%(block*block) != 0 {
			return false
		}
		shape[1], shape[2], shape[3] = shape[1]/(block*block), shape[2]*block, shape[3]*block
		return true
	})
}

func spaceToDepth(s *step) error {
	return s.blocks(func(shape []int64, block int64) bool {
		if shape[2]%block != 0 || shape[3]%block != 0 {
			return false
		}
		shape[1], shape[2], shape[3] = shape[1]*block*block, shape[2]/block, shape[3]/block
		return true
	})
}

// blocks moves elements between channels and squares of an image.
func (s *step) blocks(change func(shape []int64, block int64) bool) error {
	if err := s.need(1); err != nil {
		return err
	}
	block := s.integer("blocksize", 0)
	shape := slices.Clone(s.inputs[0].Shape)
	if len(shape) != 4 || block < 1 || block > 1<<10 || !change(shape, block) {
		return problem.New(problem.Invalid, "blocks of %d do not fit %v", block, s.inputs[0].Shape)
	}
	return s.copied(shape)
}
