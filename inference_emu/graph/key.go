package graph

import (
	"crypto/sha256"
	"encoding/hex"
	"encoding/json"
	"slices"
)

// recipe enters every key; another way of making keys needs another one.
const recipe = "tandem architecture 1"

// Key names the architecture: a hash over the kinds of the operators, their
// attributes, types and shapes and how they are connected. Names, the values of
// weights, who exported the file and the order of operators that do not depend
// on each other are not in it, so that the same network with other weights has
// the same key, and a deeper, wider or otherwise connected one another. What
// was measured or estimated for an architecture is kept under its key (Rocha,
// section 7.3.4). Hyperparameters of training do not change it.
func (g Graph) Key() string {
	hashes := map[string]string{}
	for i, input := range g.Inputs {
		hashes[input.Name] = digest("input", i, shapeOf(input))
	}
	all := make([]string, 0, len(g.Operators))
	for _, op := range g.Operators {
		inputs := make([]string, len(op.Inputs))
		for i, name := range op.Inputs {
			inputs[i] = hashes[name]
		}
		weights := make([]any, len(op.Weights))
		for i, w := range op.Weights {
			weights[i] = []any{w.Position, w.Type, w.Shape, w.Auxiliary}
		}
		outputs := make([]any, len(op.Outputs))
		for i, name := range op.Outputs {
			outputs[i] = shapeOf(g.Tensors[name])
		}
		own := digest("operator", op.Kind, op.Attributes, op.Kernel, op.Stride, op.Groups, inputs, weights, op.Parameters, outputs)
		for i, name := range op.Outputs {
			hashes[name] = digest("output", i, own)
		}
		all = append(all, own)
	}
	slices.Sort(all)
	results := make([]string, len(g.Outputs))
	for i, output := range g.Outputs {
		results[i] = hashes[output.Name]
	}
	return digest(recipe, len(g.Inputs), all, results)
}

func shapeOf(t Tensor) []any { return []any{t.Type, t.Shape, t.Batched} }

// digest hashes parts of a description. JSON keeps them apart: no list of parts
// has the text of another one.
func digest(parts ...any) string {
	text, err := json.Marshal(parts)
	if err != nil { // strings, numbers and lists of them have a text
		panic(err)
	}
	sum := sha256.Sum256(text)
	return hex.EncodeToString(sum[:])
}
