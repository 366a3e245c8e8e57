package emu

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// Anonymous is the graph with what inference costs and nothing that is the
// user's: names of tensors, operators and weights are left out.
func Anonymous(g graph.Graph) graph.Graph {
	clean := graph.Graph{Inputs: unnamed(g.Inputs), Outputs: unnamed(g.Outputs), FixedBatch: g.FixedBatch}
	for _, operator := range g.Operators {
		operator.Name, operator.Inputs, operator.Outputs, operator.Weights, operator.Attributes = "", nil, nil, nil, nil
		clean.Operators = append(clean.Operators, operator)
	}
	return clean
}

func unnamed(tensors []graph.Tensor) []graph.Tensor {
	clean := slices.Clone(tensors)
	for i := range clean {
		clean[i].Name = ""
	}
	return clean
}
