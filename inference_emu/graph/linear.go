package graph

import (
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// NewMatrixProduct multiplies the last two dimensions of two operands, and
// broadcasts those before (NumPy's matmul).
func NewMatrixProduct(operands []Operand) (Operator, Tensor, error) {
	fail := func() (Operator, Tensor, error) {
		shapes := make([][]int64, len(operands))
		for i := range operands {
			shapes[i] = operands[i].Shape
		}
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "shapes %v are not those of a matrix product", shapes)
	}
	if len(operands) < 2 || len(operands[0].Shape) == 0 || len(operands[1].Shape) == 0 {
		return fail()
	}
	a, b := slices.Clone(operands[0].Shape), slices.Clone(operands[1].Shape)
	row, column := len(a) == 1, len(b) == 1
	if row {
		a = []int64{1, a[0]}
	}
	if column {
		b = []int64{b[0], 1}
	}
	m, k, n := a[len(a)-2], a[len(a)-1], b[len(b)-1]
	if b[len(b)-2] != k {
		return fail()
	}
	before, err := Broadcast(a[:len(a)-2], b[:len(b)-2])
	if err != nil {
		return fail()
	}
	shape := slices.Clone(before)
	if !row {
		shape = append(shape, m)
	}
	if !column {
		shape = append(shape, n)
	}
	output := result(operands, shape)
	op := NewOperator("MatMul", Linear, operands, output)
	product(&op, Product(Product(before...), m), k, n)
	return op, output, nil
}

// product fills the costs of rows x k times k x n.
func product(op *Operator, rows, k, n int64) {
	op.Operations = Product(2, rows, k, n)
	op.InChannels, op.OutChannels, op.Positions = k, n, rows
}

// NewGemm is a product of two matrices, transposed or not, plus perhaps a third
// operand, whose additions are in the sums of products.
func NewGemm(operands []Operand, transposeA, transposeB bool) (Operator, Tensor, error) {
	if len(operands) < 2 || len(operands[0].Shape) != 2 || len(operands[1].Shape) != 2 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "a Gemm needs two matrices")
	}
	a, b := operands[0].Shape, operands[1].Shape
	m, k := a[0], a[1]
	if transposeA {
		m, k = k, m
	}
	inner, n := b[0], b[1]
	if transposeB {
		inner, n = n, inner
	}
	if inner != k {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "matrices %v and %v cannot be multiplied: %d columns and %d rows", a, b, k, inner)
	}
	output := result(operands, []int64{m, n})
	op := NewOperator("Gemm", Linear, operands, output)
	product(&op, m, k, n)
	if transposeA {
		op.Attributes = append(op.Attributes, "transposeA=1")
	}
	if transposeB {
		op.Attributes = append(op.Attributes, "transposeB=1")
	}
	return op, output, nil
}

// cell is what one kind of recurrent unit computes: matrices of weights, and
// operations for each unit and step beside the matrix products.
type cell struct{ gates, beside int64 }

func cells(kind string) (cell, bool) {
	switch kind {
	case "LSTM": // 4 gates of 1 function each, 3 products, 1 sum, 1 function
		return cell{gates: 4, beside: 9}, true
	case "GRU": // 3 gates of 1 function each, 3 products, 2 sums
		return cell{gates: 3, beside: 8}, true
	case "RNN":
		return cell{gates: 1, beside: 1}, true
	}
	return cell{}, false
}

// Recurring is the shape of a recurrent operator.
type Recurring struct {
	Hidden     int64
	Directions int64
	// BatchFirst says that the input is [samples, steps, features] and not
	// [steps, samples, features].
	BatchFirst bool
}

// NewRecurrent is an "LSTM", "GRU" or "RNN". Operands are the input, the weights
// [directions, gates*hidden, features], those of the recurrence and perhaps
// biases and states. The outputs are all states and the last one (and, for an
// LSTM, the last state of its cell).
func NewRecurrent(kind string, operands []Operand, shape Recurring) (Operator, []Tensor, error) {
	unit, known := cells(kind)
	if !known || len(operands) < 3 || len(operands[0].Shape) != 3 || len(operands[1].Shape) != 3 {
		return Operator{}, nil, problem.New(problem.Invalid, "%s is not a recurrent operator with an input of 3 dimensions and its weights", kind)
	}
	input, weights := operands[0].Shape, operands[1].Shape
	steps, samples, features := input[0], input[1], input[2]
	if shape.BatchFirst {
		steps, samples = samples, steps
	}
	d, h := shape.Directions, shape.Hidden
	if !slices.Equal(weights, []int64{d, Product(unit.gates, h), features}) {
		return Operator{}, nil, problem.New(problem.Invalid, "weights %v are not those of a %s with %d directions, %d units and %d features", weights, kind, d, h, features)
	}
	all, last := []int64{steps, d, samples, h}, []int64{d, samples, h}
	if shape.BatchFirst {
		all, last = []int64{samples, steps, d, h}, []int64{samples, d, h}
	}
	outputs := []Tensor{result(operands, all), result(operands, last)}
	if kind == "LSTM" {
		outputs = append(outputs, result(operands, last))
	}
	op := NewOperator(kind, Recurrent, operands, outputs...)
	each := Sum(Product(2, unit.gates, h, Sum(features, h)), Product(unit.beside, h))
	op.Operations = Product(steps, samples, d, each)
	op.InChannels, op.OutChannels, op.Positions = features, h, Product(steps, samples)
	if d > 1 {
		op.Attributes = append(op.Attributes, "bidirectional=1")
	}
	return op, outputs, nil
}
