package onnx

import (
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

func gemm(s *step) error {
	return s.emitOne(graph.NewGemm(s.pick(0, 1, 2), s.integer("transA", 0) != 0, s.integer("transB", 0) != 0))
}

func matrixProduct(s *step) error {
	operands := s.pick(0, 1)
	if s.node.Kind == "QLinearMatMul" {
		operands = s.pick(0, 3)
	}
	op, output, err := graph.NewMatrixProduct(operands)
	if err != nil {
		return err
	}
	switch s.node.Kind {
	case "MatMulInteger":
		retype(&op, &output, graph.Int32)
	case "QLinearMatMul":
		retype(&op, &output, graph.Int8)
	}
	return s.emit(op, output)
}

// einsum costs a product and a sum for each combination of its indices.
func einsum(s *step) error {
	equation := strings.ReplaceAll(s.text("equation", ""), " ", "")
	left, right, explicit := strings.Cut(equation, "->")
	terms := strings.Split(left, ",")
	if !explicit || strings.Contains(equation, ".") || len(terms) != len(s.inputs) {
		return problem.New(problem.Invalid, "equation %q: only explicit ones without dots are supported, with a term for each input", equation)
	}
	sizes := map[rune]int64{}
	for i, term := range terms {
		shape := s.inputs[i].Shape
		if len(term) != len(shape) {
			return problem.New(problem.Invalid, "equation %q: term %q is for %d dimensions, the input is %v", equation, term, len(term), shape)
		}
		for j, label := range term {
			if known, there := sizes[label]; there && known != shape[j] {
				return problem.New(problem.Invalid, "equation %q: %q is %d and %d", equation, label, known, shape[j])
			}
			sizes[label] = shape[j]
		}
	}
	shape := []int64{}
	for _, label := range right {
		size, known := sizes[label]
		if !known {
			return problem.New(problem.Invalid, "equation %q: %q is in no input", equation, label)
		}
		shape = append(shape, size)
	}
	output := s.like(s.inputs[0].Tensor, shape)
	op := graph.NewOperator("Einsum", graph.Linear, s.operands(), output)
	op.Operations = 2
	for _, size := range sizes {
		op.Operations = graph.Product(op.Operations, size)
	}
	op.Attributes = s.settings()
	return s.emit(op, output)
}

func recurrent(s *step) error {
	directions := int64(1)
	if s.text("direction", "forward") == "bidirectional" {
		directions = 2
	}
	hidden := s.integer("hidden_size", 0)
	if hidden < 1 && len(s.inputs[2].Shape) == 3 {
		hidden = s.inputs[2].Shape[2]
	}
	op, outputs, err := graph.NewRecurrent(s.node.Kind, s.operands(), graph.Recurring{Hidden: hidden, Directions: directions, BatchFirst: s.integer("layout", 0) != 0})
	if err != nil {
		return err
	}
	for i := range outputs {
		outputs[i].Type = s.inputs[0].Type
	}
	return s.emit(op, outputs...)
}

// quantizing changes between numbers and their quantized form. The scale of a
// DynamicQuantizeLinear is found in one more pass.
func quantizing(s *step) error {
	operands := s.operands()
	for i := 1; i < len(operands); i++ {
		operands[i].Auxiliary = true
	}
	op, output, err := graph.NewPointwise(s.node.Kind, operands)
	if err != nil {
		return err
	}
	if s.node.Kind != "DynamicQuantizeLinear" {
		return s.emit(op, output)
	}
	op.Operations = graph.Product(2, op.Operations)
	scale, zero := s.like(s.inputs[0].Tensor, nil), s.like(s.inputs[0].Tensor, nil)
	zero.Type = graph.Int8
	return s.emit(op, output, scale, zero)
}

func cast(s *step) error {
	to, _ := document.ElementType(uint64(s.integer("to", 0)))
	if s.node.Kind == "CastLike" {
		if err := s.need(2); err != nil {
			return err
		}
		to = s.inputs[1].Type
	}
	op, output := graph.NewCast(s.inputs[0].operand(), to)
	op.Attributes = s.settings()
	return s.emit(op, output)
}

// like is an output of the input's type that grows with the batch if any input
// does.
func (s *step) like(first graph.Tensor, shape []int64) graph.Tensor {
	output := graph.Tensor{Type: first.Type, Shape: shape}
	for _, input := range s.inputs {
		output.Batched = output.Batched || input.Batched && !input.constant
	}
	return output
}
