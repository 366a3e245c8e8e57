package graph

import "github.com/tandem-tune/tandem/internal/problem"

// pointwise says how many operations an element of the output costs, and in
// which class that is. A function of one number (an exponential, a square root)
// counts as one operation, as an addition does.
func pointwise(kind string) (class Class, each int64) {
	switch kind {
	case "Relu", "Tanh", "Erf", "Softsign", "Sign", "ThresholdedRelu":
		return Activation, 1
	case "LeakyRelu", "PRelu", "Clip", "Softplus", "Elu", "Celu":
		return Activation, 2
	case "Selu", "Gelu":
		return Activation, 3
	case "Sigmoid", "HardSigmoid":
		return Activation, 4
	case "HardSwish", "Softmax", "LogSoftmax", "Hardmax", "Swish", "Mish":
		return Activation, 5
	case "BatchNormalization": // a scale and a shift, computed from four values beforehand
		return Normalization, 2
	case "LayerNormalization", "InstanceNormalization", "GroupNormalization", "MeanVarianceNormalization":
		return Normalization, 7 // mean, difference, square and its sum, quotient, scale, shift
	case "RMSNormalization", "SimplifiedLayerNormalization", "LpNormalization":
		return Normalization, 4
	case "LRN":
		return Normalization, 5
	case "Add", "Sub", "Mul", "Div", "Pow", "Min", "Max", "Mod", "Sum", "Mean", "BitShift",
		"And", "Or", "Xor", "Not", "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "Where",
		"Abs", "Neg", "Reciprocal", "Sqrt", "Exp", "Log", "Floor", "Ceil", "Round", "IsNaN", "IsInf",
		"Sin", "Cos", "Tan", "Asin", "Acos", "Atan", "Sinh", "Cosh", "Asinh", "Acosh", "Atanh",
		"Cast":
		return Elementwise, 1
	case "QuantizeLinear", "DequantizeLinear", "DynamicQuantizeLinear":
		return Elementwise, 2
	}
	return Rest, 0
}

// IsPointwise reports whether [NewPointwise] knows the kind.
func IsPointwise(kind string) bool { _, each := pointwise(kind); return each > 0 }

// NewPointwise is an operator whose output has an element for each of its
// broadcast operands: activations, arithmetic, normalizations in an inference.
func NewPointwise(kind string, operands []Operand) (Operator, Tensor, error) {
	class, each := pointwise(kind)
	if each == 0 || len(operands) == 0 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "%s is not an operator that works element by element", kind)
	}
	shape := operands[0].Shape
	if class == Elementwise && !isQuantization(kind) {
		shapes := make([][]int64, 0, len(operands))
		for _, operand := range operands {
			shapes = append(shapes, operand.Shape)
		}
		var err error
		if shape, err = Broadcast(shapes...); err != nil {
			return Operator{}, Tensor{}, err
		}
	}
	output := result(operands, shape)
	output.Type = pointwiseType(kind, operands)
	op := NewOperator(kind, class, operands, output)
	switch kind {
	case "Sum", "Mean", "Min", "Max": // of any number of operands
		each = max(1, int64(len(operands))-1)
	}
	op.Operations = Product(each, output.Elements())
	return op, output, nil
}

func isQuantization(kind string) bool {
	return kind == "QuantizeLinear" || kind == "DequantizeLinear" || kind == "DynamicQuantizeLinear"
}

// pointwiseType is the type of the output's elements.
func pointwiseType(kind string, operands []Operand) Type {
	switch kind {
	case "Equal", "Greater", "GreaterOrEqual", "Less", "LessOrEqual", "And", "Or", "Xor", "Not", "IsNaN", "IsInf":
		return Bool
	case "QuantizeLinear", "DynamicQuantizeLinear":
		return Int8
	case "DequantizeLinear", "Where":
		if len(operands) > 1 {
			return operands[1].Type
		}
	}
	return operands[0].Type
}

// NewCast gives the elements another type.
func NewCast(operand Operand, to Type) (Operator, Tensor) {
	output := result([]Operand{operand}, operand.Shape)
	output.Type = to
	op := NewOperator("Cast", Elementwise, []Operand{operand}, output)
	op.Operations = output.Elements()
	return op, output
}

// NewReduction reads every element of the input once and costs an operation
// for each.
func NewReduction(kind string, operands []Operand, shape []int64) (Operator, Tensor) {
	output := result(operands, shape)
	op := NewOperator(kind, Elementwise, operands, output)
	op.Operations = operands[0].Elements()
	return op, output
}
