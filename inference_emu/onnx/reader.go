package onnx

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
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
	model   document.Model
	limits  document.Limits
	binding binding
	values  map[string]value
	infos   map[string]document.ValueInfo
	steps   map[string]func(*step) error
	graph   graph.Graph
	folded  int
}

func newReader(m document.Model, dimensions map[string]int64, limits document.Limits) *reader {
	return &reader{model: m, limits: limits, binding: bind(m.OpenInputs(), dimensions, limits), values: map[string]value{}, infos: map[string]document.ValueInfo{},
		steps: steps(), graph: graph.Graph{Name: m.Name, Tensors: map[string]graph.Tensor{}}}
}

func (r *reader) read() error {
	for _, one := range r.model.Stored {
		if _, twice := r.values[one.Name]; twice || one.Name == "" {
			return problem.New(problem.Invalid, "initializer %q: its name is empty or there twice", one.Name)
		}
		r.values[one.Name] = constantOf(one)
		r.graph.WeightsOutside = r.graph.WeightsOutside || one.Outside
	}
	for _, info := range slices.Concat(r.model.Infos, r.model.Outputs) {
		r.infos[info.Name] = info
	}
	if err := r.readInputs(); err != nil {
		return err
	}
	for i, n := range r.model.Nodes {
		if err := r.readNode(i, n); err != nil {
			return document.Within(err, "node %d %q (%s)", i, n.Name, n.Kind)
		}
	}
	for _, info := range r.model.Outputs {
		output, known := r.values[info.Name]
		if !known {
			return problem.New(problem.Invalid, "output %q: no node writes it", info.Name)
		}
		if !output.constant {
			r.graph.Outputs = append(r.graph.Outputs, output.Tensor)
		}
	}
	return nil
}

// mostOpen bounds the open dimensions that are named.
const mostOpen = 8

// readInputs says all that is wrong with the inputs at once.
func (r *reader) readInputs() error {
	var faults []problem.Field
	for _, info := range r.model.OpenInputs() {
		tensor, err := r.binding.input(info)
		if known, ok := err.(*problem.Error); ok && len(known.Fields) > 0 {
			faults = append(faults, known.Fields...)
			continue
		}
		if err != nil {
			return err
		}
		if _, twice := r.values[info.Name]; twice || info.Name == "" {
			return problem.New(problem.Invalid, "input %q: its name is empty or there twice", info.Name)
		}
		r.values[info.Name] = value{Tensor: tensor}
		r.graph.Inputs = append(r.graph.Inputs, tensor)
		r.graph.Tensors[info.Name] = tensor
	}
	if len(faults) > mostOpen {
		rest := problem.Field{Path: "inputs", Message: fmt.Sprintf("leave %d more open", len(faults)-mostOpen)}
		faults = append(faults[:mostOpen], rest)
	}
	if len(faults) > 0 {
		return problem.WithFields("the file leaves dimensions open: export it with fixed ones, but for the batch", faults)
	}
	r.graph.FixedBatch = r.binding.fixed(r.graph.Inputs)
	return nil
}

func constantOf(one document.Stored) value {
	return value{Tensor: graph.Tensor{Name: one.Name, Type: one.Kind, Shape: one.Shape}, constant: true, numbers: one.Numbers, kept: one.Kind, origin: one.Name}
}

// readNode works one node out and appends its operator, or keeps its constants.
func (r *reader) readNode(index int, n document.Node) error {
	s := &step{reader: r, node: n, index: index}
	for _, name := range n.Inputs {
		input, known := r.values[name]
		if name != "" && !known {
			return problem.New(problem.Invalid, "input %q: no node before it writes it%s", name, r.later(index, name))
		}
		s.inputs = append(s.inputs, input)
	}
	for _, name := range n.Outputs {
		if _, twice := r.values[name]; twice && name != "" {
			return problem.New(problem.Invalid, "output %q is written already", name)
		}
	}
	handle := r.steps[n.Kind]
	if n.Domain != "" && n.Domain != "ai.onnx.ml" {
		handle = r.steps[n.Domain+"."+n.Kind]
	} else if handle == nil && graph.IsPointwise(n.Kind) {
		handle = needing(1, pointwise)
	}
	if handle == nil || n.HasGraph() { // what If, Loop and Scan cost depends on the data
		handle = (*step).unknown
	}
	return handle(s)
}

// later says which node at or behind a place writes what it reads.
func (r *reader) later(index int, name string) string {
	for i, n := range r.model.Nodes[index:] {
		if slices.Contains(n.Outputs, name) {
			return fmt.Sprintf(", but node %d does: the nodes are in a cycle, or out of order", index+i)
		}
	}
	return ""
}

// keep remembers an output and checks its shape.
func (r *reader) keep(v value) error {
	if v.Name == "" {
		return nil
	}
	if _, twice := r.values[v.Name]; twice {
		return problem.New(problem.Invalid, "output %q is written twice", v.Name)
	}
	if err := document.CheckShape(v.Shape, r.limits); err != nil {
		return document.Within(err, "output %q", v.Name)
	}
	if len(v.numbers) > r.limits.Folded || r.folded+len(v.numbers) > document.TotalFolded {
		v.numbers = nil
	}
	r.folded += len(v.numbers)
	r.values[v.Name] = v
	return nil
}
