package onnx

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// moved emits an output with some of the first input's elements; the other
// inputs say where and how many.
func (s *step) moved(shape []int64) error {
	output := s.like(s.inputs[0].Tensor, shape)
	return s.emit(graph.NewMovement(s.node.Kind, s.pick(0), output), output)
}

// copied emits an output with elements of the inputs, by the attributes.
func (s *step) copied(shape []int64) error {
	output := s.like(s.inputs[0].Tensor, shape)
	op := graph.NewMovement(s.node.Kind, s.operands(), output)
	op.Attributes = s.settings()
	return s.emit(op, output)
}

func concat(s *step) error {
	return s.emitOne(graph.NewConcatenation(s.operands(), int(max(-100, min(s.integer("axis", 1), 100)))))
}

func split(s *step) error {
	input := s.inputs[0].Tensor
	at, err := axis(s.integer("axis", 0), len(input.Shape))
	if err != nil {
		return err
	}
	sizes, err := s.listed(1, "split")
	if err != nil {
		return err
	}
	count := int64(len(s.node.Outputs))
	if len(sizes) == 0 { // equal parts, the last one perhaps smaller
		each := (input.Shape[at] + count - 1) / max(count, 1)
		for i := range count {
			sizes = append(sizes, max(0, min(each, input.Shape[at]-i*each)))
		}
	}
	if graph.Sum(sizes...) != input.Shape[at] || int64(len(sizes)) != count || slices.Min(sizes) < 0 {
		return problem.New(problem.Invalid, "parts of %v do not make up dimension %d of %v", sizes, at, input.Shape)
	}
	outputs := make([]graph.Tensor, count)
	for i := range outputs {
		shape := slices.Clone(input.Shape)
		shape[at] = sizes[i]
		outputs[i] = s.like(input, shape)
	}
	op := graph.NewMovement("Split", s.pick(0), outputs...)
	op.Attributes = []string{fmt.Sprintf("axis=%d", at)}
	return s.emit(op, outputs...)
}

// cut is a slice along one dimension.
type cut struct{ from, to, step int64 }

// cuts are those of a Slice by dimension: attributes in version 1, inputs since.
func (s *step) cuts(rank int) (map[int]cut, error) {
	starts, ends, axes := s.integers("starts"), s.integers("ends"), s.integers("axes")
	var steps []int64
	for i, list := range []*[]int64{&starts, &ends, &axes, &steps} {
		if s.has(i + 1) {
			var err error
			if *list, err = s.numbers(i + 1); err != nil {
				return nil, err
			}
		}
	}
	if len(starts) != len(ends) || (len(axes) != 0 && len(axes) != len(starts)) || (len(steps) != 0 && len(steps) != len(starts)) || len(starts) > rank {
		return nil, problem.New(problem.Invalid, "starts %v, ends %v, axes %v and steps %v do not go together", starts, ends, axes, steps)
	}
	all := map[int]cut{}
	for i := range starts {
		at, one := i, cut{from: starts[i], to: ends[i], step: 1}
		if len(axes) > 0 {
			var err error
			if at, err = axis(axes[i], rank); err != nil {
				return nil, err
			}
		}
		if len(steps) > 0 {
			one.step = steps[i]
		}
		if one.step == 0 {
			return nil, problem.New(problem.Invalid, "a step of 0")
		}
		all[at] = one
	}
	return all, nil
}

// within gives the first index and the number of elements of a dimension.
func (c cut) within(size int64) (first, count int64) {
	if size == 0 {
		return 0, 0
	}
	place := func(at, low, high int64) int64 {
		if at < 0 {
			at += size
		}
		return max(low, min(at, high))
	}
	if c.step > 0 {
		first = place(c.from, 0, size)
		room := place(c.to, 0, size) - first
		if room <= 0 {
			return first, 0
		}
		return first, (room-1)/c.step + 1
	}
	first = place(c.from, 0, size-1)
	room := first - place(c.to, -1, size-1)
	if room <= 0 {
		return first, 0
	}
	return first, (room-1)/-c.step + 1
}

func slice(s *step) error {
	shape := slices.Clone(s.inputs[0].Shape)
	cuts, err := s.cuts(len(shape))
	if err != nil {
		return err
	}
	for at, one := range cuts {
		_, shape[at] = one.within(shape[at])
	}
	return s.moved(shape)
}

func gather(s *step) error {
	data, indices := s.inputs[0].Tensor, s.inputs[1].Tensor
	at, err := axis(s.integer("axis", 0), len(data.Shape))
	if err != nil {
		return err
	}
	output := s.like(data, slices.Concat(data.Shape[:at], indices.Shape, data.Shape[at+1:]))
	op := graph.NewLookUp(s.operands(), output)
	op.Attributes = []string{fmt.Sprintf("axis=%d", at)}
	return s.emit(op, output)
}

func gatherElements(s *step) error {
	return s.moved(s.inputs[1].Shape)
}

func gatherND(s *step) error {
	data, indices, samples := s.inputs[0].Shape, s.inputs[1].Shape, s.integer("batch_dims", 0)
	if len(indices) == 0 || samples < 0 || samples > int64(len(data)) {
		return problem.New(problem.Invalid, "indices %v do not fit %v", indices, data)
	}
	depth := indices[len(indices)-1] + samples
	if depth < 0 || depth > int64(len(data)) {
		return problem.New(problem.Invalid, "indices %v do not fit %v", indices, data)
	}
	return s.moved(slices.Concat(indices[:len(indices)-1], data[depth:]))
}

func expand(s *step) error {
	wanted, err := s.numbers(1)
	if err != nil {
		return err
	}
	shape, err := graph.Broadcast(s.inputs[0].Shape, wanted)
	if err != nil {
		return err
	}
	if slices.Equal(shape, s.inputs[0].Shape) {
		return s.view(shape)
	}
	return s.moved(shape)
}

func tile(s *step) error {
	repeats, err := s.numbers(1)
	if err != nil {
		return err
	}
	shape := slices.Clone(s.inputs[0].Shape)
	if len(repeats) != len(shape) || (len(repeats) > 0 && slices.Min(repeats) < 0) {
		return problem.New(problem.Invalid, "repeats %v do not fit %v", repeats, shape)
	}
	for i := range shape {
		shape[i] = graph.Product(shape[i], repeats[i])
	}
	return s.moved(shape)
}

func pad(s *step) error {
	shape := slices.Clone(s.inputs[0].Shape)
	axes := make([]int, len(shape))
	for i := range axes {
		axes[i] = i
	}
	pads, err := s.listed(1, "pads")
	if err != nil {
		return err
	}
	if s.has(3) {
		given, err := s.numbers(3)
		if err != nil {
			return err
		}
		axes = axes[:0]
		for _, one := range given {
			at, err := axis(one, len(shape))
			if err != nil {
				return err
			}
			axes = append(axes, at)
		}
	}
	if len(pads) != 2*len(axes) {
		return problem.New(problem.Invalid, "pads %v: two for each of %d dimensions are needed", pads, len(axes))
	}
	for i, at := range axes {
		shape[at] = whole(float64(shape[at]) + float64(pads[i]) + float64(pads[len(axes)+i]))
	}
	if slices.Max(append(pads, 0)) == 0 && slices.Min(append(pads, 0)) == 0 {
		return s.view(shape) // PyTorch writes one before poolings
	}
	return s.moved(shape)
}

func oneHot(s *step) error {
	depth, err := s.numbers(1)
	if err != nil {
		return err
	}
	if err := s.need(3); err != nil {
		return err
	}
	at, err := axis(s.integer("axis", -1), len(s.inputs[0].Shape)+1)
	if err != nil || len(depth) != 1 {
		return problem.New(problem.Invalid, "axis or depth %v do not fit %v", depth, s.inputs[0].Shape)
	}
	output := s.like(s.inputs[2].Tensor, slices.Insert(slices.Clone(s.inputs[0].Shape), at, depth[0]))
	return s.emit(graph.NewMovement("OneHot", s.pick(0), output), output)
}
