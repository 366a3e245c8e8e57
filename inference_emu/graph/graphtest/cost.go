package graphtest

import "github.com/tandem-tune/tandem/inference_emu/graph"

// Cost is what one run of a graph with a batch costs, and by class of operators.
type Cost struct {
	graph.Cost
	// Parameters that several operators share count once.
	Parameters          int64
	PeakActivationBytes int64
	// Classes have the operations of each class, those that compute most first.
	Classes []ClassCost
	// Uncounted names the operators, as "kind name", whose operations are not
	// known; their bytes are counted.
	Uncounted []string
}

// ClassCost is the part of a cost that one class of operators has.
type ClassCost struct {
	Class                 graph.Class
	Operators             int
	Operations            int64
	ReadBytes, WriteBytes int64
}

// CostOf is what a run with a batch of samples costs; a batch below one is one.
func CostOf(g graph.Graph, batch int64) Cost {
	cost := Cost{Cost: g.Cost(batch), PeakActivationBytes: g.PeakActivations(max(batch, 1))}
	parts := map[graph.Class]*ClassCost{}
	shared := map[string]bool{}
	for _, op := range g.Operators {
		part := parts[op.Class]
		if part == nil {
			part = &ClassCost{Class: op.Class}
			parts[op.Class] = part
		}
		scale := g.Scale(op, batch)
		part.Operators++
		part.Operations = graph.Sum(part.Operations, graph.Product(op.Operations, scale))
		part.ReadBytes = graph.Sum(part.ReadBytes, graph.Product(op.ReadBytes, scale))
		part.WriteBytes = graph.Sum(part.WriteBytes, graph.Product(op.WrittenBytes, scale))
		cost.Parameters = graph.Sum(cost.Parameters, ownParameters(op, shared))
		if op.Class == graph.Rest && op.Operations == 0 {
			cost.Uncounted = append(cost.Uncounted, op.Kind+" "+op.Name)
		}
	}
	for _, class := range graph.Classes() {
		if part := parts[class]; part != nil {
			cost.Classes = append(cost.Classes, *part)
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
