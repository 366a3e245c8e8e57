package graph

import (
	"slices"
	"strings"
)

// Cost is what one run of a graph with a batch costs.
type Cost struct {
	// Operations are floating-point (or integer) operations, a multiplication
	// and an addition counting as two.
	Operations int64
	// StoredBytes are of the weights: those that several operators share count once.
	StoredBytes int64
	// WeightBytes are read in a run, ReadBytes and WrittenBytes are of the
	// tensors that are computed, as if no cache held them.
	WeightBytes, ReadBytes, WrittenBytes int64
}

// Cost is what a run with a batch of samples costs; a batch below one is one.
func (g Graph) Cost(batch int64) Cost {
	cost := Cost{StoredBytes: g.StoredBytes()}
	for _, op := range g.Operators {
		scale := g.Scale(op, batch)
		cost.Operations = Sum(cost.Operations, Product(op.Operations, scale))
		cost.WeightBytes = Sum(cost.WeightBytes, op.WeightBytes)
		cost.ReadBytes = Sum(cost.ReadBytes, Product(op.ReadBytes, scale))
		cost.WrittenBytes = Sum(cost.WrittenBytes, Product(op.WrittenBytes, scale))
	}
	return cost
}

// Scale is what the operations and computed bytes of an operator are multiplied
// with for a batch: the batch, or 1 for what does not depend on the samples. Where
// it is not told what flows between operators, all of them depend on the samples:
// nearly all of a network's work does.
func (g Graph) Scale(op Operator, batch int64) int64 {
	if len(g.Tensors) == 0 {
		return max(batch, 1)
	}
	for _, names := range [][]string{op.Outputs, op.Inputs} {
		for _, name := range names {
			if g.Tensors[name].Batched {
				return max(batch, 1)
			}
		}
	}
	return 1
}

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
