package zoo

import (
	"encoding/binary"
	"fmt"
	"math"
	"math/rand/v2"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// The numbers of the fields of ONNX's messages that are written, and of its types
// (onnx.proto3, IR version 8).
const (
	modelVersion, modelGraph, modelOperators               = 1, 7, 8
	graphNode, graphName, graphTensor, graphIn, graphOut   = 1, 2, 5, 11, 12
	nodeInput, nodeOutput, nodeKind, nodeAttribute         = 1, 2, 4, 5
	attributeName, attributeInteger, attributeIntegers     = 1, 3, 8
	attributeType, attributeIsInteger, attributeIsIntegers = 20, 2, 7
	tensorShape, tensorType, tensorName, tensorBytes       = 1, 2, 8, 9
	float32Type                                            = 1
	version, operators                                     = 8, 14
)

// File is a graph of this package as an ONNX file that takes any batch, with
// random weights. Where only another operator with weights or a pooling follows,
// a rectifier stands in between, which the graph counts as part of the operator
// before. The error is of an operator that has no floating-point form here.
func File(g graph.Graph) ([]byte, error) {
	w := writer{graph: g, users: map[string][]graph.Operator{}, random: rand.New(rand.NewPCG(1, uint64(len(g.Operators))))}
	for _, operator := range g.Operators {
		for _, input := range operator.Inputs {
			w.users[input] = append(w.users[input], operator)
		}
	}
	for _, operator := range g.Operators {
		if operator.Type != graph.Float32 {
			return nil, fmt.Errorf("%s: operator %s is of %s: only float32 is written", g.Name, operator.Name, operator.Type)
		}
		if err := w.operator(operator); err != nil {
			return nil, fmt.Errorf("%s: %w", g.Name, err)
		}
	}
	w.content = append(w.content, text(graphName, g.Name)...)
	for _, one := range g.Inputs {
		w.content = append(w.content, port(graphIn, one.Name, one.Shape[1:])...)
	}
	for _, one := range g.Outputs {
		shape := one.Shape[1:]
		if w.flat(one.Name) {
			shape = []int64{one.Elements()}
		}
		w.content = append(w.content, port(graphOut, one.Name, shape)...)
	}
	file := integer(modelVersion, version)
	file = append(file, message(modelGraph, w.content)...)
	return append(file, message(modelOperators, text(1, ""), integer(2, operators))...), nil
}

// writer puts the messages of a graph together.
type writer struct {
	graph   graph.Graph
	users   map[string][]graph.Operator
	random  *rand.Rand
	content []byte
}

func (w *writer) operator(o graph.Operator) error {
	out := o.Outputs[0]
	switch o.Kind {
	case "Conv":
		from, to := w.rectified(out)
		weight, bias := w.stored(out+"_weight", o.OutChannels, o.InChannels/o.Groups, o.Kernel[0], o.Kernel[1]), w.stored(out+"_bias", o.OutChannels)
		w.node(o.Kind, []string{o.Inputs[0], weight, bias}, from, append(w.window(o), attribute("group", o.Groups))...)
		to()
	case "Gemm":
		from, to := w.rectified(out)
		flat := o.Inputs[0]
		if !w.flat(flat) {
			flat += "_flat"
			w.node("Flatten", []string{o.Inputs[0]}, flat)
		}
		w.node(o.Kind, []string{flat, w.stored(out+"_weight", o.OutChannels, o.InChannels), w.stored(out+"_bias", o.OutChannels)}, from, attribute("transB", 1))
		to()
	case "MaxPool", "AveragePool":
		w.node(o.Kind, o.Inputs, out, w.window(o)...)
	case "Softmax", "Concat":
		w.node(o.Kind, o.Inputs, out, attribute("axis", 1))
	case "GlobalAveragePool", "HardSwish", "HardSigmoid", "Add":
		w.node(o.Kind, o.Inputs, out)
	case "Mul":
		if len(o.Inputs) != 2 {
			return fmt.Errorf("operator %s multiplies by nothing: take a network without empty edges", o.Name)
		}
		w.node(o.Kind, o.Inputs, out)
	default:
		return fmt.Errorf("operator %s: %s is not written", o.Name, o.Kind)
	}
	return nil
}

// flat says whether a tensor has lost its rows and columns: what dense operators
// and a softmax behind them write.
func (w *writer) flat(name string) bool {
	for _, operator := range w.graph.Operators {
		if operator.Outputs[0] == name {
			return operator.Kind == "Gemm" || operator.Kind == "Softmax" && w.flat(operator.Inputs[0])
		}
	}
	return false
}

// rectified is the name that an operator with weights writes to, and what writes
// the rectifier between that and the name that others read.
func (w *writer) rectified(out string) (name string, rectify func()) {
	for _, user := range w.users[out] {
		switch user.Kind {
		case "Conv", "Gemm", "MaxPool", "AveragePool", "GlobalAveragePool":
		default:
			return out, func() {}
		}
	}
	if len(w.users[out]) == 0 {
		return out, func() {}
	}
	return out + "_linear", func() { w.node("Relu", []string{out + "_linear"}, out) }
}

// window are the attributes of a kernel. Pads are spread as TensorFlow's SAME
// does, the larger half behind.
func (w *writer) window(o graph.Operator) [][]byte {
	in, out := w.graph.Tensors[o.Inputs[0]].Shape, w.graph.Tensors[o.Outputs[0]].Shape
	pads := make([]int64, 4)
	for axis := range 2 {
		all := max(0, (out[2+axis]-1)*o.Stride[axis]+o.Kernel[axis]-in[2+axis])
		pads[axis], pads[2+axis] = all/2, all-all/2
	}
	return [][]byte{attributeList("kernel_shape", o.Kernel...), attributeList("strides", o.Stride...), attributeList("pads", pads...)}
}

func (w *writer) node(kind string, inputs []string, output string, attributes ...[]byte) {
	var parts [][]byte
	for _, input := range inputs {
		parts = append(parts, text(nodeInput, input))
	}
	parts = append(parts, text(nodeOutput, output), text(nodeKind, kind))
	for _, one := range attributes {
		parts = append(parts, message(nodeAttribute, one))
	}
	w.content = append(w.content, message(graphNode, parts...)...)
}

// drawn is how many weights are drawn; larger tensors repeat them, which changes
// nothing of what a run takes.
const drawn = 1 << 16

// stored writes random weights, scaled so that what flows neither grows nor
// vanishes (He et al. 2015).
func (w *writer) stored(name string, shape ...int64) string {
	elements, from := int64(1), int64(1)
	for axis, size := range shape {
		elements *= size
		if axis > 0 {
			from *= size
		}
	}
	values := make([]byte, 0, 4*elements)
	for range min(elements, drawn) {
		values = binary.LittleEndian.AppendUint32(values, math.Float32bits(float32(w.random.NormFloat64()*math.Sqrt(2/float64(from)))))
	}
	for int64(len(values)) < 4*elements {
		values = append(values, values[:min(4*elements-int64(len(values)), int64(len(values)))]...)
	}
	var parts [][]byte
	for _, size := range shape {
		parts = append(parts, integer(tensorShape, size))
	}
	w.content = append(w.content, message(graphTensor, append(parts, integer(tensorType, float32Type), text(tensorName, name), message(tensorBytes, values))...)...)
	return name
}

// port declares an input or an output whose first dimension is the batch.
func port(number protowire.Number, name string, shape []int64) []byte {
	dimensions := [][]byte{message(1, text(2, "batch"))}
	for _, size := range shape {
		dimensions = append(dimensions, message(1, integer(1, size)))
	}
	return message(number, text(1, name), message(2, message(1, integer(1, float32Type), message(2, dimensions...))))
}

func attribute(name string, value int64) []byte {
	return join(text(attributeName, name), integer(attributeInteger, value), integer(attributeType, attributeIsInteger))
}

func attributeList(name string, values ...int64) []byte {
	out := join(text(attributeName, name), integer(attributeType, attributeIsIntegers))
	for _, value := range values {
		out = append(out, integer(attributeIntegers, value)...)
	}
	return out
}

func message(number protowire.Number, parts ...[]byte) []byte {
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), join(parts...))
}

func text(number protowire.Number, value string) []byte { return message(number, []byte(value)) }

func integer(number protowire.Number, value int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(value))
}

func join(parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return all
}
