package onnx

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// axesOf are the dimensions that an operator works on: an attribute in older
// versions and an input in newer ones, all where none are given.
func (s *step) axesOf(rank int) ([]int, error) {
	given := s.integers("axes")
	if strip, _ := axesInput(s.node.Kind); strip > 0 && s.has(strip) {
		var err error
		if given, err = s.numbers(strip); err != nil {
			return nil, err
		}
	}
	var axes []int
	for _, one := range given {
		at, err := axis(one, rank)
		if err != nil {
			return nil, err
		}
		if slices.Contains(axes, at) {
			return nil, problem.New(problem.Invalid, "axes %v: one is there twice", given)
		}
		axes = append(axes, at)
	}
	if len(given) == 0 {
		for i := range rank {
			axes = append(axes, i)
		}
	}
	return axes, nil
}

// axesInput says which input has the axes, if one has.
func axesInput(kind string) (int, bool) {
	switch kind {
	case "Resize", "Upsample":
		return 0, false
	}
	return 1, true
}

func reduction(s *step) error {
	input := s.inputs[0]
	rank := len(input.Shape)
	keep := s.integer("keepdims", 1) != 0
	t := input.Type
	var axes []int
	var err error
	if s.node.Kind == "ArgMax" || s.node.Kind == "ArgMin" {
		t = graph.Int64
		var at int
		at, err = axis(s.integer("axis", 0), rank)
		axes = []int{at}
	} else {
		axes, err = s.axesOf(rank)
		if err == nil && len(axes) == rank && s.integer("noop_with_empty_axes", 0) != 0 && s.noAxes() {
			axes = nil
		}
	}
	if err != nil {
		return err
	}
	shape := []int64{}
	for i, size := range input.Shape {
		switch {
		case !slices.Contains(axes, i):
			shape = append(shape, size)
		case keep:
			shape = append(shape, 1)
		}
	}
	op, output := graph.NewReduction(s.node.Kind, s.pick(0), shape)
	retype(&op, &output, t)
	op.Attributes = s.settings("axes")
	return s.emit(op, output)
}

// noAxes says whether the node names no axes at all.
func (s *step) noAxes() bool {
	return len(s.integers("axes")) == 0 && (!s.has(1) || s.inputs[1].Elements() == 0)
}

// topK sorts in groups: as many comparisons as a heap of k needs at most would
// be a guess, so each element counts once, as it is read once.
func topK(s *step) error {
	input := s.inputs[0]
	at, err := axis(s.integer("axis", -1), len(input.Shape))
	if err != nil {
		return err
	}
	k := []int64{s.integer("k", 0)}
	if s.has(1) {
		if k, err = s.numbers(1); err != nil {
			return err
		}
	}
	if len(k) != 1 {
		return problem.New(problem.Invalid, "k has %d values, one is needed", len(k))
	}
	shape := slices.Clone(input.Shape)
	shape[at] = k[0]
	op, output := graph.NewReduction("TopK", s.pick(0), shape)
	places := output
	places.Type = graph.Int64
	return s.emit(op, output, places)
}

func cumulative(s *step) error {
	op, output := graph.NewReduction(s.node.Kind, s.pick(0), s.inputs[0].Shape)
	op.Attributes = s.settings()
	return s.emit(op, output)
}
