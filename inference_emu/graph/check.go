package graph

import "github.com/tandem-tune/tandem/internal/problem"

// Check says what is wrong with a graph: an operator that reads what nothing
// before it has written, a tensor written twice or without a shape, or sizes
// that no machine has.
func (g Graph) Check() error {
	written := map[string]bool{}
	for _, input := range g.Inputs {
		if written[input.Name] || input.Name == "" {
			return problem.New(problem.Invalid, "input %q: its name is empty or there twice", input.Name)
		}
		written[input.Name] = true
	}
	for i, op := range g.Operators {
		for _, name := range op.Inputs {
			if !written[name] {
				return problem.New(problem.Invalid, "operator %d (%s %q) reads %q, which nothing before it writes", i, op.Kind, op.Name, name)
			}
		}
		for _, name := range op.Outputs {
			if written[name] || name == "" {
				return problem.New(problem.Invalid, "operator %d (%s %q) writes %q, which is empty or written already", i, op.Kind, op.Name, name)
			}
			written[name] = true
		}
		for _, count := range []int64{op.Operations, op.ReadBytes, op.WrittenBytes, op.WeightBytes, op.Parameters} {
			if count == Largest || count < 0 {
				return problem.New(problem.Invalid, "operator %d (%s %q) costs more than can be counted", i, op.Kind, op.Name)
			}
		}
	}
	for name := range written {
		tensor, known := g.Tensors[name]
		if !known || tensor.Name != name || tensor.Bytes() == Largest {
			return problem.New(problem.Invalid, "tensor %q has no shape, or one that no machine could hold", name)
		}
	}
	for _, output := range g.Outputs {
		if !written[output.Name] {
			return problem.New(problem.Invalid, "output %q: nothing writes it", output.Name)
		}
	}
	return nil
}
