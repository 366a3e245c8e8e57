package graph

import (
	"slices"
	"strings"
)

// Classes are all classes, those that compute most first.
func Classes() []Class {
	return []Class{Convolution, Depthwise, Linear, Recurrent, Normalization, Activation, Pooling, Elementwise, Movement, Rest}
}

// UncountedKinds are the kinds of operators whose operations are not known, each
// once, in the order of their first operator.
func (g Graph) UncountedKinds() []string {
	var kinds []string
	for _, op := range g.Operators {
		if op.Class == Rest && op.Operations == 0 && !slices.Contains(kinds, op.Kind) {
			kinds = append(kinds, op.Kind)
		}
	}
	return kinds
}

// Quantized reports whether the graph computes in another precision than it was most
// likely trained in: runtimes differ in what they make of that.
func (g Graph) Quantized() bool {
	return slices.ContainsFunc(g.Operators, func(o Operator) bool {
		return o.Type == Float16 || o.Kind == "QuantizeLinear" || o.Kind == "DynamicQuantizeLinear" || strings.HasPrefix(o.Kind, "QLinear") || strings.HasSuffix(o.Kind, "Integer")
	})
}

// StoredBytes are those of the weights; what several operators share counts once. An
// operator without a list of weights has what its totals say.
func (g Graph) StoredBytes() int64 {
	stored, shared := int64(0), map[string]bool{}
	for _, op := range g.Operators {
		if len(op.Weights) == 0 {
			stored = Sum(stored, op.WeightBytes)
		}
		for _, weight := range op.Weights {
			if weight.Name == "" || !shared[weight.Name] {
				shared[weight.Name] = true
				stored = Sum(stored, Product(Product(weight.Shape...), weight.Type.Bytes()))
			}
		}
	}
	return stored
}
