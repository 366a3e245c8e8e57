package graph

import "slices"

// Operand is an input of an operator: computed by another one or stored with
// the model.
type Operand struct {
	Tensor
	Stored    bool
	Auxiliary bool // see [Weight]
}

// Computed are operands that flow between operators.
func Computed(tensors ...Tensor) []Operand {
	list := make([]Operand, len(tensors))
	for i, tensor := range tensors {
		list[i] = Operand{Tensor: tensor}
	}
	return list
}

// NewOperator is an operator with everything but its operations: what it reads,
// writes and stores. Operands without a name are optional ones that are absent.
func NewOperator(kind string, class Class, operands []Operand, outputs ...Tensor) Operator {
	op := Operator{Kind: kind, Class: class}
	for position, operand := range operands {
		if operand.Stored {
			op.Weights = append(op.Weights, Weight{Name: operand.Name, Position: position, Type: operand.Type, Shape: operand.Shape, Auxiliary: operand.Auxiliary})
			op.WeightBytes = Sum(op.WeightBytes, operand.Bytes())
			if !operand.Auxiliary {
				op.Parameters = Sum(op.Parameters, operand.Elements())
			}
			continue
		}
		if operand.Name == "" {
			continue
		}
		op.Inputs = append(op.Inputs, operand.Name)
		op.ReadBytes = Sum(op.ReadBytes, operand.Bytes())
	}
	for _, output := range outputs {
		op.Outputs = append(op.Outputs, output.Name)
		op.WrittenBytes = Sum(op.WrittenBytes, output.Bytes())
	}
	if len(outputs) > 0 {
		op.Type = outputs[0].Type
	}
	return op
}

// grows says whether any operand grows with the batch.
func grows(operands []Operand) bool {
	return slices.ContainsFunc(operands, func(o Operand) bool { return o.Batched && !o.Stored })
}

// result is an output computed from operands, of the first one's type.
func result(operands []Operand, shape []int64) Tensor {
	return Tensor{Type: operands[0].Type, Shape: shape, Batched: grows(operands)}
}
