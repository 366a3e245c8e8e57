package onnx

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// value is what is known of a tensor while the nodes are read in order.
type value struct {
	graph.Tensor
	// constant says that it does not depend on the graph's inputs.
	constant bool
	// numbers are its values where shapes may depend on them; nil if unknown.
	numbers []float64
	// kept is the type in which a constant is stored: int8 for weights that are
	// dequantized before they are used.
	kept graph.Type
	// origin is the stored tensor that a constant is another view of.
	origin string
	// setting says that it came with an attribute or a computation on shapes,
	// and is not a learned value.
	setting bool
}

// operand is the value as the arithmetic of costs takes it.
func (v value) operand() graph.Operand {
	operand := graph.Operand{Tensor: v.Tensor, Stored: v.constant}
	if v.constant {
		operand.Name, operand.Type = v.origin, v.kept
		operand.Auxiliary = v.setting || len(v.Shape) == 0 || v.Type == graph.Int64 || v.Type == graph.Bool
	}
	return operand
}

// reader makes a graph of a model, node by node.
type reader struct {
	model   model
	limits  Limits
	binding binding
	values  map[string]value
	infos   map[string]valueInfo
	steps   map[string]func(*step) error
	graph   graph.Graph
	folded  int
}

func newReader(m model, dimensions map[string]int64, limits Limits) *reader {
	return &reader{model: m, limits: limits, binding: bind(m.openInputs(), dimensions, limits), values: map[string]value{}, infos: map[string]valueInfo{},
		steps: steps(), graph: graph.Graph{Name: m.name, Tensors: map[string]graph.Tensor{}}}
}

// openInputs are the inputs that no initializer fills: older files list both.
func (m model) openInputs() []valueInfo {
	filled := map[string]bool{}
	for _, one := range m.stored {
		filled[one.name] = true
	}
	return slices.DeleteFunc(slices.Clone(m.inputs), func(info valueInfo) bool { return filled[info.name] })
}

func (r *reader) read() error {
	for _, one := range r.model.stored {
		if _, twice := r.values[one.name]; twice || one.name == "" {
			return problem.New(problem.Invalid, "initializer %q: its name is empty or there twice", one.name)
		}
		r.values[one.name] = constantOf(one)
	}
	for _, info := range slices.Concat(r.model.infos, r.model.outputs) {
		r.infos[info.name] = info
	}
	if err := r.readInputs(); err != nil {
		return err
	}
	for i, n := range r.model.nodes {
		if err := r.readNode(i, n); err != nil {
			return within(err, "node %d %q (%s)", i, n.name, n.kind)
		}
	}
	for _, info := range r.model.outputs {
		output, known := r.values[info.name]
		if !known {
			return problem.New(problem.Invalid, "output %q: no node writes it", info.name)
		}
		if !output.constant {
			r.graph.Outputs = append(r.graph.Outputs, output.Tensor)
		}
	}
	return nil
}

// readInputs says all that is wrong with the inputs at once.
func (r *reader) readInputs() error {
	var faults []problem.Field
	for _, info := range r.model.openInputs() {
		tensor, err := r.binding.input(info)
		if known, ok := err.(*problem.Error); ok && len(known.Fields) > 0 {
			faults = append(faults, known.Fields...)
			continue
		}
		if err != nil {
			return err
		}
		if _, twice := r.values[info.name]; twice || info.name == "" {
			return problem.New(problem.Invalid, "input %q: its name is empty or there twice", info.name)
		}
		r.values[info.name] = value{Tensor: tensor}
		r.graph.Inputs = append(r.graph.Inputs, tensor)
		r.graph.Tensors[info.name] = tensor
	}
	if len(faults) > 0 {
		return problem.WithFields("the file leaves dimensions open", faults)
	}
	return nil
}

func constantOf(one stored) value {
	return value{Tensor: graph.Tensor{Name: one.name, Type: one.kind, Shape: one.shape}, constant: true, numbers: one.numbers, kept: one.kind, origin: one.name}
}

// readNode works one node out and appends its operator, or keeps its constants.
func (r *reader) readNode(index int, n node) error {
	for _, name := range slices.Sorted(maps.Keys(n.attributes)) {
		if n.attributes[name].subgraph {
			return problem.New(problem.Invalid, "operators with graphs of their own (If, Loop, Scan) are not supported: what they cost depends on the data. Export without them, for instance by tracing instead of scripting")
		}
	}
	s := &step{reader: r, node: n, index: index}
	for _, name := range n.inputs {
		input, known := r.values[name]
		if name != "" && !known {
			return problem.New(problem.Invalid, "input %q: no node before it writes it", name)
		}
		s.inputs = append(s.inputs, input)
	}
	for _, name := range n.outputs {
		if _, twice := r.values[name]; twice && name != "" {
			return problem.New(problem.Invalid, "output %q is written already", name)
		}
	}
	handle := r.steps[n.kind]
	if n.domain != "" && n.domain != "ai.onnx.ml" {
		handle = r.steps[n.domain+"."+n.kind]
	}
	if handle == nil {
		handle = (*step).unknown
	}
	return handle(s)
}

// keep remembers an output and checks its shape.
func (r *reader) keep(v value) error {
	if v.Name == "" {
		return nil
	}
	if _, twice := r.values[v.Name]; twice {
		return problem.New(problem.Invalid, "output %q is written twice", v.Name)
	}
	if err := checkShape(v.Shape, r.limits); err != nil {
		return within(err, "output %q", v.Name)
	}
	if len(v.numbers) > r.limits.Folded || r.folded+len(v.numbers) > totalFolded {
		v.numbers = nil
	}
	r.folded += len(v.numbers)
	r.values[v.Name] = v
	return nil
}

// named is the name of a node, or one made of its kind and place.
func (n node) named(index int) string {
	if n.name != "" {
		return n.name
	}
	return fmt.Sprintf("%s.%d", n.kind, index)
}
