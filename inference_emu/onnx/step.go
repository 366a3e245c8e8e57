package onnx

import (
	"fmt"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

// step is one node while it is worked out.
type step struct {
	reader *reader
	node   document.Node
	index  int
	inputs []value
}

// has says whether an optional input is there.
func (s *step) has(i int) bool { return i < len(s.node.Inputs) && s.node.Inputs[i] != "" }

// need checks that the first count inputs are there.
func (s *step) need(count int) error {
	for i := range count {
		if !s.has(i) {
			return problem.New(problem.Invalid, "input %d is missing", i)
		}
	}
	return nil
}

// operands are the inputs, absent ones without a name.
func (s *step) operands() []graph.Operand {
	list := make([]graph.Operand, len(s.inputs))
	for i, input := range s.inputs {
		list[i] = input.operand()
	}
	return list
}

// pick are some of the inputs, as far as they are there.
func (s *step) pick(places ...int) []graph.Operand {
	var list []graph.Operand
	for _, i := range places {
		if s.has(i) {
			list = append(list, s.inputs[i].operand())
		}
	}
	return list
}

func (s *step) integer(name string, standard int64) int64 {
	if a, there := s.node.Attributes[name]; there {
		return a.Integer
	}
	return standard
}

// integers are those of an attribute about shapes, which are few.
func (s *step) integers(name string) []int64 {
	list := s.node.Attribute(name).Integers
	return list[:min(len(list), 1024)]
}

func (s *step) text(name, standard string) string {
	if a, there := s.node.Attributes[name]; there {
		return a.Text
	}
	return standard
}

// numbers are the values of an input on which the output's shape depends.
func (s *step) numbers(i int) ([]int64, error) {
	if !s.has(i) {
		return nil, problem.New(problem.Invalid, "input %d is missing", i)
	}
	if s.inputs[i].numbers == nil && s.inputs[i].Elements() != 0 {
		return nil, problem.New(problem.Invalid, "the output's shape depends on the values of %q, which are not known before it runs, are in another file, or are more than %d", s.node.Inputs[i], s.reader.limits.Folded)
	}
	list := make([]int64, len(s.inputs[i].numbers))
	for j, number := range s.inputs[i].numbers {
		list[j] = whole(number)
	}
	return list, nil
}

// whole is a number as an integer, bounded so that sums of two stay integers.
func whole(number float64) int64 {
	const bound = 1 << 62
	switch {
	case math.IsNaN(number):
		return 0
	case number >= bound:
		return bound
	case number <= -bound:
		return -bound
	}
	return int64(number)
}

// axis is a dimension of a rank, counted from the end where it is negative.
func axis(at int64, rank int) (int, error) {
	if at < 0 {
		at += int64(rank)
	}
	if at < 0 || at >= int64(rank) {
		return 0, problem.New(problem.Invalid, "axis %d is none of %d dimensions", at, rank)
	}
	return int(at), nil
}

// allConstant says whether the output does not depend on the graph's inputs.
func (s *step) allConstant() bool {
	for i := range s.inputs {
		if s.has(i) && !s.inputs[i].constant {
			return false
		}
	}
	return len(s.inputs) > 0
}

// emit names the operator and its outputs, and appends it to the graph; what
// depends on constants only is a constant, computed when a model is loaded.
func (s *step) emit(op graph.Operator, outputs ...graph.Tensor) error {
	if s.allConstant() {
		return s.emitConstants(outputs)
	}
	op.Kind, op.Name, op.Outputs = s.node.Kind, s.node.Named(s.index), nil
	op.WrittenBytes = 0
	if op.Type == "" && len(outputs) > 0 {
		op.Type = outputs[0].Type
	}
	for i, output := range outputs {
		if i >= len(s.node.Outputs) || s.node.Outputs[i] == "" {
			continue // an output that nobody asks for
		}
		output.Name = s.node.Outputs[i]
		op.Outputs = append(op.Outputs, output.Name)
		if !op.View {
			op.WrittenBytes = graph.Sum(op.WrittenBytes, output.Bytes())
		}
		if err := s.reader.keep(value{Tensor: output}); err != nil {
			return err
		}
		s.reader.graph.Tensors[output.Name] = output
	}
	if len(op.Outputs) == 0 {
		return problem.New(problem.Invalid, "it has no output")
	}
	slices.Sort(op.Attributes)
	s.reader.graph.Operators = append(s.reader.graph.Operators, op)
	return nil
}

// emitOne is emit with what makes an operator with one output returns.
func (s *step) emitOne(op graph.Operator, output graph.Tensor, err error) error {
	if err != nil {
		return err
	}
	return s.emit(op, output)
}

// listed are whole numbers that newer versions have in an input and older ones in an
// attribute.
func (s *step) listed(input int, attribute string) ([]int64, error) {
	if s.has(input) {
		return s.numbers(input)
	}
	return s.integers(attribute), nil
}

// emitConstants keeps outputs that are computed from constants.
func (s *step) emitConstants(outputs []graph.Tensor) error {
	for i, output := range outputs {
		if i >= len(s.node.Outputs) || s.node.Outputs[i] == "" {
			continue
		}
		output.Name = s.node.Outputs[i]
		v := value{Tensor: output, constant: true, kept: output.Type, origin: output.Name}
		first := s.inputs[0]
		if first.Elements() == output.Elements() {
			v.origin = first.origin
			if s.node.Kind == "DequantizeLinear" || first.kept == first.Type && s.node.Kind != "Cast" {
				v.kept = first.kept
			}
		}
		v.setting = true
		for j, input := range s.inputs {
			v.setting = v.setting && (input.setting || !s.has(j))
		}
		if i == 0 {
			v.numbers = s.fold(output)
		}
		if err := s.reader.keep(v); err != nil {
			return err
		}
	}
	return nil
}

// retype gives the output of a quantized operator its type.
func retype(op *graph.Operator, output *graph.Tensor, t graph.Type) {
	output.Type, op.Type = t, t
	op.WrittenBytes = output.Bytes()
}

// settings are the attributes that make another architecture: numbers and words,
// but neither what only matters in training nor constants against division by
// zero.
func (s *step) settings(except ...string) []string {
	except = append(except, "epsilon", "momentum", "training_mode", "spatial", "consumed_inputs", "seed")
	var list []string
	for name, a := range s.node.Attributes {
		if slices.Contains(except, name) {
			continue
		}
		switch {
		case a.Is == document.IsInteger:
			list = append(list, fmt.Sprintf("%s=%d", name, a.Integer))
		case a.Is == document.IsFloat:
			list = append(list, fmt.Sprintf("%s=%g", name, a.Float))
		case a.Is == document.IsText:
			list = append(list, name+"="+strings.ToValidUTF8(a.Text, "?"))
		case a.Is == document.IsIntegers && a.Count <= 32:
			list = append(list, fmt.Sprintf("%s=%v", name, a.Integers))
		}
	}
	return list
}

// unknown keeps an operator that is not known: its bytes are counted, its
// operations are not, and the file has to say the shapes of its outputs.
func (s *step) unknown() error {
	kind := s.node.Kind
	if s.node.Domain != "" {
		kind = s.node.Domain + "." + kind
	}
	var outputs []graph.Tensor
	batched := false
	for _, input := range s.inputs {
		batched = batched || input.Batched
	}
	for _, name := range s.node.Outputs {
		info := s.reader.infos[name]
		shape := s.reader.binding.declared(info)
		if shape == nil && name != "" {
			return problem.New(problem.Invalid, "%s is not known here, and the file does not say the shape of its output %q: run onnx.shape_inference.infer_shapes on the model and save it", kind, name)
		}
		outputs = append(outputs, graph.Tensor{Type: info.Kind, Shape: shape, Batched: batched})
	}
	op := graph.NewOperator(kind, graph.Rest, s.operands(), outputs...)
	op.Attributes = s.settings()
	return s.emit(op, outputs...)
}
