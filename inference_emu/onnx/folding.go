package onnx

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

// settled keeps an output whose values are known before the model runs.
func (s *step) settled(t graph.Type, shape []int64, numbers []float64) error {
	if len(s.node.Outputs) == 0 || s.node.Outputs[0] == "" {
		return problem.New(problem.Invalid, "it has no output")
	}
	name := s.node.Outputs[0]
	return s.reader.keep(value{Tensor: graph.Tensor{Name: name, Type: t, Shape: shape}, constant: true, numbers: numbers, kept: t, origin: name, setting: true})
}

// shapeOf is the shape (or the number of elements) of a tensor: known, whatever
// its values are.
func shapeOf(s *step) error {
	shape := s.inputs[0].Shape
	if s.node.Kind == "Size" {
		return s.settled(graph.Int64, nil, []float64{float64(graph.Product(shape...))})
	}
	rank := int64(len(shape))
	from, count := cut{from: s.integer("start", 0), to: s.integer("end", rank), step: 1}.within(rank)
	numbers := make([]float64, 0, count)
	for _, size := range shape[from : from+count] {
		numbers = append(numbers, float64(size))
	}
	return s.settled(graph.Int64, []int64{count}, numbers)
}

func constant(s *step) error {
	for name, a := range s.node.Attributes {
		switch name {
		case "value":
			if a.Tensor != nil {
				return s.settled(a.Tensor.Kind, a.Tensor.Shape, a.Tensor.Numbers)
			}
		case "value_int":
			return s.settled(graph.Int64, nil, []float64{float64(a.Integer)})
		case "value_float":
			return s.settled(graph.Float32, nil, []float64{a.Float})
		case "value_ints":
			var numbers []float64
			if len(a.Integers) == a.Count {
				for _, one := range a.Integers {
					numbers = append(numbers, float64(one))
				}
			}
			return s.settled(graph.Int64, []int64{int64(a.Count)}, numbers)
		case "value_floats":
			var numbers []float64
			if len(a.Floats) == a.Count {
				numbers = a.Floats
			}
			return s.settled(graph.Float32, []int64{int64(a.Count)}, numbers)
		}
	}
	return problem.New(problem.Invalid, "a constant without a value that is a tensor of numbers")
}

func constantOfShape(s *step) error {
	shape, err := s.numbers(0)
	if err != nil {
		return err
	}
	if err := document.CheckShape(shape, s.reader.limits); err != nil {
		return err
	}
	t, number := graph.Float32, 0.0
	if fill := s.node.Attribute("value").Tensor; fill != nil {
		t = fill.Kind
		if len(fill.Numbers) == 1 {
			number = fill.Numbers[0]
		}
	}
	var numbers []float64
	if count := graph.Product(shape...); count <= int64(s.reader.limits.Folded) {
		numbers = slices.Repeat([]float64{number}, int(count))
	}
	return s.settled(t, shape, numbers)
}

func rangeOf(s *step) error {
	for _, input := range s.inputs[:3] {
		if len(input.numbers) != 1 {
			return problem.New(problem.Invalid, "how long a range is must be known before it runs")
		}
	}
	from, to, by := s.inputs[0].numbers[0], s.inputs[1].numbers[0], s.inputs[2].numbers[0]
	count := math.Ceil((to - from) / by)
	if math.IsNaN(count) || count > float64(s.reader.limits.Elements) {
		return problem.New(problem.Invalid, "a range from %g to %g in steps of %g", from, to, by)
	}
	count = max(count, 0)
	var numbers []float64
	if count <= float64(s.reader.limits.Folded) {
		numbers = make([]float64, int(count))
		for i := range numbers {
			numbers[i] = from + float64(i)*by
		}
	}
	return s.settled(s.inputs[0].Type, []int64{int64(count)}, numbers)
}

// fold computes the values of an output from known ones, nil if they are too
// many or of no use for shapes.
func (s *step) fold(output graph.Tensor) []float64 {
	count := output.Elements()
	if count > int64(s.reader.limits.Folded) || s.reader.folded+int(count) > document.TotalFolded {
		return nil
	}
	for i, input := range s.inputs {
		if s.has(i) && input.numbers == nil {
			return nil
		}
	}
	first := s.inputs[0].numbers
	switch s.node.Kind {
	case "Reshape", "Flatten", "Squeeze", "Unsqueeze", "Identity", "Dropout":
		return first
	case "Cast":
		return mapped(first, func(x float64) float64 {
			if output.Type == graph.Int64 || output.Type == graph.Int32 {
				return math.Trunc(x)
			}
			return x
		})
	case "Concat":
		return s.foldConcat()
	case "Gather":
		return s.foldGather()
	case "Slice":
		return s.foldSlice(output.Shape)
	case "Transpose":
		return s.foldTranspose(output.Shape)
	case "Expand":
		return broadcast(s.inputs[0], output.Shape)
	case "ReduceProd", "ReduceSum", "ReduceMax", "ReduceMin":
		return s.foldReduction(count)
	}
	return s.foldArithmetic(output)
}

func mapped(list []float64, f func(float64) float64) []float64 {
	result := make([]float64, len(list))
	for i, x := range list {
		result[i] = f(x)
	}
	return result
}

// foldConcat joins lists; shapes are not more than that.
func (s *step) foldConcat() []float64 {
	var all []float64
	for _, input := range s.inputs {
		if len(input.Shape) != 1 {
			return nil
		}
		all = append(all, input.numbers...)
	}
	return all
}

func (s *step) foldGather() []float64 {
	if len(s.inputs[0].Shape) != 1 {
		return nil
	}
	data := s.inputs[0].numbers
	result := make([]float64, 0, len(s.inputs[1].numbers))
	for _, number := range s.inputs[1].numbers {
		at, err := axis(whole(number), len(data))
		if err != nil {
			return nil
		}
		result = append(result, data[at])
	}
	return result
}

// rearranged takes, for each place of an output, an element of a constant; from
// turns the indices of the output into those of the constant.
func rearranged(v value, shape []int64, from func(at []int64)) []float64 {
	result := make([]float64, graph.Product(shape...))
	at := make([]int64, len(shape))
	for i := range result {
		rest := int64(i)
		for d := len(shape) - 1; d >= 0; d-- {
			at[d], rest = rest%shape[d], rest/shape[d]
		}
		from(at)
		offset := int64(0)
		for d, size := range v.Shape {
			offset = offset*size + at[d]
		}
		if offset < 0 || offset >= int64(len(v.numbers)) {
			return nil
		}
		result[i] = v.numbers[offset]
	}
	return result
}

func (s *step) foldSlice(shape []int64) []float64 {
	input := s.inputs[0]
	cuts, err := s.cuts(len(input.Shape))
	if err != nil {
		return nil
	}
	return rearranged(input, shape, func(at []int64) {
		for d, one := range cuts {
			first, _ := one.within(input.Shape[d])
			at[d] = first + at[d]*one.step
		}
	})
}

func (s *step) foldTranspose(shape []int64) []float64 {
	order := s.integers("perm")
	if len(order) == 0 {
		for d := range shape {
			order = append(order, int64(len(shape)-1-d))
		}
	}
	was := make([]int64, len(shape))
	return rearranged(s.inputs[0], shape, func(at []int64) {
		copy(was, at)
		for d, from := range order {
			at[from] = was[d]
		}
	})
}

// foldReduction reduces a list to one number.
func (s *step) foldReduction(count int64) []float64 {
	list := s.inputs[0].numbers
	if count != 1 || len(list) == 0 {
		return nil
	}
	result := list[0]
	for _, x := range list[1:] {
		switch s.node.Kind {
		case "ReduceProd":
			result *= x
		case "ReduceSum":
			result += x
		case "ReduceMax":
			result = max(result, x)
		case "ReduceMin":
			result = min(result, x)
		}
	}
	return []float64{result}
}
