package graph

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// NewView shows the same memory with another shape: it costs nothing.
func NewView(kind string, operand Operand, shape []int64) (Operator, Tensor) {
	output := result([]Operand{operand}, shape)
	op := NewOperator(kind, Movement, []Operand{operand}, output)
	op.View, op.ReadBytes, op.WrittenBytes = true, 0, 0
	return op, output
}

// NewMovement copies elements: no operations. It reads at most as many bytes of
// its computed operands as it writes: what a slice leaves out is not read.
func NewMovement(kind string, operands []Operand, outputs ...Tensor) Operator {
	op := NewOperator(kind, Movement, operands, outputs...)
	op.ReadBytes = min(op.ReadBytes, op.WrittenBytes)
	return op
}

// NewTransposition reorders dimensions; without an order, it reverses them.
func NewTransposition(operand Operand, order []int) (Operator, Tensor, error) {
	rank := len(operand.Shape)
	if len(order) == 0 {
		for i := range rank {
			order = append(order, rank-1-i)
		}
	}
	shape := make([]int64, len(order))
	seen := make([]bool, rank)
	for i, from := range order {
		if from < 0 || from >= rank || seen[from] || len(order) != rank {
			return Operator{}, Tensor{}, problem.New(problem.Invalid, "%v is not an order of the %d dimensions of %v", order, rank, operand.Shape)
		}
		seen[from] = true
		shape[i] = operand.Shape[from]
	}
	output := result([]Operand{operand}, shape)
	op := NewMovement("Transpose", []Operand{operand}, output)
	op.Attributes = []string{fmt.Sprintf("order=%v", order)}
	return op, output, nil
}

// NewConcatenation joins operands along a dimension, counted from the end where
// it is negative.
func NewConcatenation(operands []Operand, axis int) (Operator, Tensor, error) {
	if len(operands) == 0 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "a concatenation of nothing")
	}
	shape := slices.Clone(operands[0].Shape)
	given := axis
	if axis < 0 {
		axis += len(shape)
	}
	if axis < 0 || axis >= len(shape) {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "axis %d is none of %v", given, shape)
	}
	for _, operand := range operands[1:] {
		for i, size := range operand.Shape {
			if len(operand.Shape) != len(shape) || (i != axis && size != shape[i]) {
				return Operator{}, Tensor{}, problem.New(problem.Invalid, "shapes %v and %v cannot be joined along dimension %d", operands[0].Shape, operand.Shape, axis)
			}
		}
		if len(operand.Shape) == 0 {
			return Operator{}, Tensor{}, problem.New(problem.Invalid, "a number cannot be joined with %v", operands[0].Shape)
		}
		shape[axis] = Sum(shape[axis], operand.Shape[axis])
	}
	output := result(operands, shape)
	op := NewOperator("Concat", Movement, operands, output)
	op.Attributes = []string{fmt.Sprintf("axis=%d", axis)}
	return op, output, nil
}

// NewLookUp takes rows of a table (the first operand) by indices (the second).
// Of a stored table only the rows that are asked for are read, but all of it is
// stored: the bytes of weights read are those of the output.
func NewLookUp(operands []Operand, output Tensor) Operator {
	op := NewMovement("Gather", operands, output)
	for i := range op.Weights {
		if operands[op.Weights[i].Position].Type == Int64 {
			continue
		}
		op.WeightBytes = min(op.WeightBytes, output.Bytes())
	}
	return op
}
