package graphtest

import "github.com/tandem-tune/tandem/inference_emu/graph"

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
	// PeakActivationBytes is what [graph.Graph.PeakActivations] says.
	PeakActivationBytes int64       `json:"peak_activation_bytes"`
	Classes             []ClassCost `json:"classes"`
	// Uncounted names the operators, as "kind name", whose operations are not
	// known; their bytes are counted.
	Uncounted []string `json:"uncounted,omitempty"`
}

// ClassCost is the part of a cost that one class of operators has.
type ClassCost struct {
	Class        graph.Class `json:"class"`
	Operators    int         `json:"operators"`
	Operations   int64       `json:"operations"`
	Parameters   int64       `json:"parameters"`
	WeightBytes  int64       `json:"weight_bytes"`
	ReadBytes    int64       `json:"read_bytes"`
	WrittenBytes int64       `json:"written_bytes"`
}

// CostOf is what a run with a batch of samples costs; a batch below one is one.
func CostOf(g graph.Graph, batch int64) Cost {
	batch = max(batch, 1)
	cost := Cost{Batch: batch, Operators: len(g.Operators), PeakActivationBytes: g.PeakActivations(batch), StoredBytes: g.StoredBytes()}
	parts := map[graph.Class]*ClassCost{}
	shared := map[string]bool{}
	for _, op := range g.Operators {
		part := parts[op.Class]
		if part == nil {
			part = &ClassCost{Class: op.Class}
			parts[op.Class] = part
		}
		scale := scaleOf(g, op, batch)
		part.Operators++
		part.Operations = graph.Sum(part.Operations, graph.Product(op.Operations, scale))
		part.WeightBytes = graph.Sum(part.WeightBytes, op.WeightBytes)
		part.ReadBytes = graph.Sum(part.ReadBytes, graph.Product(op.ReadBytes, scale))
		part.WrittenBytes = graph.Sum(part.WrittenBytes, graph.Product(op.WrittenBytes, scale))
		part.Parameters = graph.Sum(part.Parameters, ownParameters(op, shared))
		if op.Class == graph.Rest && op.Operations == 0 {
			cost.Uncounted = append(cost.Uncounted, op.Kind+" "+op.Name)
		}
	}
	for _, class := range graph.Classes() {
		if part := parts[class]; part != nil {
			cost.Classes = append(cost.Classes, *part)
			cost.Operations = graph.Sum(cost.Operations, part.Operations)
			cost.Parameters = graph.Sum(cost.Parameters, part.Parameters)
			cost.WeightBytes = graph.Sum(cost.WeightBytes, part.WeightBytes)
			cost.ReadBytes = graph.Sum(cost.ReadBytes, part.ReadBytes)
			cost.WrittenBytes = graph.Sum(cost.WrittenBytes, part.WrittenBytes)
		}
	}
	return cost
}

// ownParameters are the parameters of an operator that no one before it has; shared
// remembers names. An operator without a list of weights has what its total says.
func ownParameters(op graph.Operator, shared map[string]bool) (parameters int64) {
	if len(op.Weights) == 0 {
		return op.Parameters
	}
	for _, weight := range op.Weights {
		if weight.Name != "" && shared[weight.Name] {
			continue
		}
		shared[weight.Name] = true
		if !weight.Auxiliary {
			parameters = graph.Sum(parameters, graph.Product(weight.Shape...))
		}
	}
	return parameters
}

// scaleOf is what the operations and computed bytes of an operator are multiplied
// with for a batch: the batch, or 1 for what does not depend on the samples. Where
// it is not told what flows between operators, all of them depend on the samples:
// nearly all of a network's work does.
func scaleOf(g graph.Graph, op graph.Operator, batch int64) int64 {
	if len(g.Tensors) == 0 {
		return batch
	}
	for _, names := range [][]string{op.Outputs, op.Inputs} {
		for _, name := range names {
			if g.Tensors[name].Batched {
				return batch
			}
		}
	}
	return 1
}
