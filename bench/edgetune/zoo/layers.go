// Package zoo builds the graphs of models that others have measured on devices,
// so that an estimate can be held against the measurement: MobileNet v1 to v3,
// EfficientNet-lite, ResNet-50, Inception v3, Xception, the cells of
// NAS-Bench-201 and the four models of MLPerf Tiny.
//
// The graphs are as an inference engine runs them: a normalization and a
// rectifier behind a convolution are part of it, other activations are operators
// of their own.
package zoo

import (
	"fmt"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// layers appends operators to a graph, one behind the other.
type layers struct {
	graph *graph.Graph
	kind  graph.Type
	at    shape
	last  string
}

// shape is of a picture: rows, columns and channels.
type shape struct{ rows, columns, channels int64 }

func (s shape) elements() int64 { return s.rows * s.columns * s.channels }

func start(name string, kind graph.Type, in shape) *layers {
	input := tensor("input", kind, in)
	return &layers{
		graph: &graph.Graph{Name: name, Inputs: []graph.Tensor{input}, Tensors: map[string]graph.Tensor{"input": input}},
		kind:  kind, at: in, last: "input",
	}
}

func tensor(name string, kind graph.Type, of shape) graph.Tensor {
	return graph.Tensor{Name: name, Type: kind, Shape: []int64{1, of.channels, of.rows, of.columns}, Batched: true}
}

// done closes the graph at the last operator.
func (l *layers) done() graph.Graph {
	l.graph.Outputs = []graph.Tensor{l.graph.Tensors[l.last]}
	return *l.graph
}

// point is a place in the graph from which another branch can start.
type point struct {
	at   shape
	last string
}

func (l *layers) here() point     { return point{l.at, l.last} }
func (l *layers) back(to point)   { l.at, l.last = to.at, to.last }
func (l *layers) size() int64     { return l.kind.Bytes() }
func (l *layers) channels() int64 { return l.at.channels }

// put appends an operator that makes a tensor of this shape.
func (l *layers) put(operator graph.Operator, inputs []string, out shape) {
	operator.Name = fmt.Sprintf("%s_%d", operator.Kind, len(l.graph.Operators))
	operator.Type = l.kind
	operator.Inputs, operator.Outputs = inputs, []string{operator.Name}
	for _, name := range inputs {
		operator.ReadBytes += l.graph.Tensors[name].Bytes()
	}
	operator.WrittenBytes = out.elements() * l.size()
	operator.WeightBytes = operator.Parameters * l.size()
	l.graph.Operators = append(l.graph.Operators, operator)
	l.graph.Tensors[operator.Name] = tensor(operator.Name, l.kind, out)
	l.at, l.last = out, operator.Name
}

func strided(size, stride int64) int64 { return (size + stride - 1) / stride }

// window is the part of an input that a kernel sees. A valid window lies wholly
// inside the picture; others are padded.
type window struct {
	rows, columns, stride int64
	valid                 bool
}

func square(size, stride int64) window { return window{rows: size, columns: size, stride: stride} }

func (l *layers) slide(w window) shape {
	if w.valid {
		return shape{(l.at.rows-w.rows)/w.stride + 1, (l.at.columns-w.columns)/w.stride + 1, l.at.channels}
	}
	return shape{strided(l.at.rows, w.stride), strided(l.at.columns, w.stride), l.at.channels}
}

func (l *layers) convolve(out int64, w window) {
	in, to := l.channels(), l.slide(w)
	to.channels = out
	weights := w.rows * w.columns * in * out
	l.put(graph.Operator{
		Kind: "Conv", Class: graph.Convolution, Operations: 2 * weights * to.rows * to.columns, Parameters: weights + out,
		Kernel: []int64{w.rows, w.columns}, Stride: []int64{w.stride, w.stride}, Groups: 1,
		InChannels: in, OutChannels: out, Positions: to.rows * to.columns,
	}, []string{l.last}, to)
}

func (l *layers) conv(out, kernel, stride int64) { l.convolve(out, square(kernel, stride)) }

func (l *layers) depthwise(w window) {
	to := l.slide(w)
	weights := w.rows * w.columns * to.channels
	l.put(graph.Operator{
		Kind: "Conv", Class: graph.Depthwise, Operations: 2 * weights * to.rows * to.columns, Parameters: weights + to.channels,
		Kernel: []int64{w.rows, w.columns}, Stride: []int64{w.stride, w.stride}, Groups: to.channels,
		InChannels: to.channels, OutChannels: to.channels, Positions: to.rows * to.columns,
	}, []string{l.last}, to)
}

func (l *layers) pool(kind string, w window) {
	to := l.slide(w)
	l.put(graph.Operator{
		Kind: kind, Class: graph.Pooling, Operations: w.rows * w.columns * to.elements(),
		Kernel: []int64{w.rows, w.columns}, Stride: []int64{w.stride, w.stride}, Positions: to.rows * to.columns,
	}, []string{l.last}, to)
}

func (l *layers) globalPool() {
	l.put(graph.Operator{Kind: "GlobalAveragePool", Class: graph.Pooling, Operations: l.at.elements(), Positions: 1},
		[]string{l.last}, shape{1, 1, l.channels()})
}

// dense is a matrix product of all that there is.
func (l *layers) dense(out int64) {
	in := l.at.elements()
	l.put(graph.Operator{
		Kind: "Gemm", Class: graph.Linear, Operations: 2 * in * out, Parameters: in*out + out,
		InChannels: in, OutChannels: out, Positions: 1,
	}, []string{l.last}, shape{1, 1, out})
}

// each is an operator of one input that handles every element alone.
func (l *layers) each(kind string, class graph.Class, operations int64) {
	l.put(graph.Operator{Kind: kind, Class: class, Operations: operations * l.at.elements()}, []string{l.last}, l.at)
}

func (l *layers) hardSwish() { l.each("HardSwish", graph.Activation, 4) }
func (l *layers) softmax()   { l.each("Softmax", graph.Activation, 5) }

// add sums up with another branch of the same shape.
func (l *layers) add(other point) {
	l.put(graph.Operator{Kind: "Add", Class: graph.Elementwise, Operations: l.at.elements()}, []string{l.last, other.last}, l.at)
}

// concatenate joins the channels of branches of the same size.
func (l *layers) concatenate(branches ...point) {
	out, names := branches[0].at, []string{}
	out.channels = 0
	for _, branch := range branches {
		out.channels += branch.at.channels
		names = append(names, branch.last)
	}
	l.put(graph.Operator{Kind: "Concat", Class: graph.Movement}, names, out)
}

// squeeze weighs the channels by what is in all of the picture (squeeze and
// excitation, Hu et al. 2018).
func (l *layers) squeeze(hidden int64) {
	from := l.here()
	l.globalPool()
	l.conv(hidden, 1, 1)
	l.conv(from.at.channels, 1, 1)
	l.each("HardSigmoid", graph.Activation, 3)
	l.put(graph.Operator{Kind: "Mul", Class: graph.Elementwise, Operations: from.at.elements()}, []string{from.last, l.last}, from.at)
}
