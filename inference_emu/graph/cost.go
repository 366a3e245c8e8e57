package graph

import (
	"slices"
	"strings"
)

// Cost is what one run of a graph with a batch costs.
type Cost struct {
	Batch     int64 `json:"batch"`
	Operators int   `json:"operators"`
	// Operations are floating-point (or integer) operations, a multiplication
	// and an addition counting as two.
	Operations int64 `json:"operations"`
	// Parameters and StoredBytes are of the model: weights that several
	// operators share count once.
	Parameters  int64 `json:"parameters"`
	StoredBytes int64 `json:"stored_bytes"`
	// WeightBytes are read in a run, ReadBytes and WrittenBytes are of the
	// tensors that are computed, as if no cache held them.
	WeightBytes  int64 `json:"weight_bytes"`
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
	// PeakActivationBytes is what [Graph.PeakActivations] says.
	PeakActivationBytes int64       `json:"peak_activation_bytes"`
	Classes             []ClassCost `json:"classes"`
	// Uncounted names the operators, as "kind name", whose operations are not
	// known; their bytes are counted.
	Uncounted []string `json:"uncounted,omitempty"`
}

// ClassCost is the part of a cost that one class of operators has.
type ClassCost struct {
	Class        Class `json:"class"`
	Operators    int   `json:"operators"`
	Operations   int64 `json:"operations"`
	Parameters   int64 `json:"parameters"`
	WeightBytes  int64 `json:"weight_bytes"`
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
}

// Classes are all classes, those that compute most first.
func Classes() []Class {
	return []Class{Convolution, Depthwise, Linear, Recurrent, Normalization, Activation, Pooling, Elementwise, Movement, Rest}
}

// Cost is what a run with a batch of samples costs; a batch below one is one.
func (g Graph) Cost(batch int64) Cost {
	batch = max(batch, 1)
	cost := Cost{Batch: batch, Operators: len(g.Operators), PeakActivationBytes: g.PeakActivations(batch)}
	parts := map[Class]*ClassCost{}
	shared := map[string]bool{}
	for _, op := range g.Operators {
		part := parts[op.Class]
		if part == nil {
			part = &ClassCost{Class: op.Class}
			parts[op.Class] = part
		}
		scale := g.Scale(op, batch)
		part.Operators++
		part.Operations = Sum(part.Operations, Product(op.Operations, scale))
		part.WeightBytes = Sum(part.WeightBytes, op.WeightBytes)
		part.ReadBytes = Sum(part.ReadBytes, Product(op.ReadBytes, scale))
		part.WrittenBytes = Sum(part.WrittenBytes, Product(op.WrittenBytes, scale))
		parameters, stored := ownWeights(op, shared)
		part.Parameters = Sum(part.Parameters, parameters)
		cost.StoredBytes = Sum(cost.StoredBytes, stored)
		if op.uncounted() {
			cost.Uncounted = append(cost.Uncounted, op.Kind+" "+op.Name)
		}
	}
	for _, class := range Classes() {
		if part := parts[class]; part != nil {
			cost.Classes = append(cost.Classes, *part)
			cost.Operations = Sum(cost.Operations, part.Operations)
			cost.Parameters = Sum(cost.Parameters, part.Parameters)
			cost.WeightBytes = Sum(cost.WeightBytes, part.WeightBytes)
			cost.ReadBytes = Sum(cost.ReadBytes, part.ReadBytes)
			cost.WrittenBytes = Sum(cost.WrittenBytes, part.WrittenBytes)
		}
	}
	return cost
}

// uncounted reports whether the operator's operations are not known.
func (o Operator) uncounted() bool { return o.Class == Rest && o.Operations == 0 }

// UncountedKinds are the kinds of operators whose operations are not known, each
// once, in the order of their first operator.
func (g Graph) UncountedKinds() []string {
	var kinds []string
	for _, op := range g.Operators {
		if op.uncounted() && !slices.Contains(kinds, op.Kind) {
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

// ownWeights are the parameters and stored bytes of an operator that no one
// before it has; shared remembers names. An operator without a list of weights
// has what its totals say.
func ownWeights(op Operator, shared map[string]bool) (parameters, stored int64) {
	if len(op.Weights) == 0 {
		return op.Parameters, op.WeightBytes
	}
	for _, weight := range op.Weights {
		if weight.Name != "" && shared[weight.Name] {
			continue
		}
		shared[weight.Name] = true
		elements := Product(weight.Shape...)
		stored = Sum(stored, Product(elements, weight.Type.Bytes()))
		if !weight.Auxiliary {
			parameters = Sum(parameters, elements)
		}
	}
	return parameters, stored
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
