package nn

import (
	"fmt"

	"gorgonia.org/gorgonia"
	"gorgonia.org/tensor"
)

// Node is a value of a [Graph]: a matrix with a row for each sample of the batch.
type Node = gorgonia.Node

// Graph computes the loss of a batch and, by Gorgonia, its gradients. The shapes
// are fixed: build it once, fill in the inputs, and call [Graph.Learn] for each
// batch. The first error of building it is returned by [Graph.Compile].
type Graph struct {
	batch   int
	graph   *gorgonia.ExprGraph
	leaves  []leaf
	ones    *Node
	loss    gorgonia.Value
	machine gorgonia.VM
	err     error
}

// leaf is some columns of a tensor, transposed, so that a batch of rows is
// multiplied from the left.
type leaf struct {
	of       *Tensor
	from, to int
	node     *Node
	values   []float64
}

// NewGraph is empty, for batches of so many samples.
func NewGraph(batch int) *Graph {
	g := &Graph{batch: batch, graph: gorgonia.NewGraph()}
	var all []float64
	g.ones, all = g.Input(1)
	for i := range all {
		all[i] = 1
	}
	return g
}

func (g *Graph) matrix(rows, columns int, name string) (*Node, []float64) {
	values := make([]float64, rows*columns)
	return gorgonia.NewMatrix(g.graph, tensor.Float64, gorgonia.WithShape(rows, columns), gorgonia.WithName(fmt.Sprint(name, g.graph.Nodes().Len())),
		gorgonia.WithValue(tensor.New(tensor.WithShape(rows, columns), tensor.WithBacking(values)))), values
}

// Input has so many columns, whose values the caller fills in, by rows.
func (g *Graph) Input(columns int) (*Node, []float64) { return g.matrix(g.batch, columns, "input") }

// Constant has the values, by rows, of which there are so many.
func (g *Graph) Constant(rows int, values []float64) *Node {
	node, own := g.matrix(rows, len(values)/rows, "constant")
	copy(own, values)
	return node
}

// weights are columns of a tensor.
func (g *Graph) weights(t *Tensor, from, to int) *Node {
	node, values := g.matrix(to-from, t.Rows, "weights")
	g.leaves = append(g.leaves, leaf{of: t, from: from, to: to, node: node, values: values})
	return node
}

func (g *Graph) keep(node *Node, err error) *Node {
	if err != nil && g.err == nil {
		g.err = err
	}
	return node
}

func (g *Graph) one(do func(*Node) (*Node, error), a *Node) *Node {
	if g.err != nil {
		return a
	}
	return g.keep(do(a))
}

func (g *Graph) two(do func(a, b *Node) (*Node, error), a, b *Node) *Node {
	if g.err != nil {
		return a
	}
	return g.keep(do(a, b))
}

// Add, Subtract and Scale go element by element; Multiply is the product of matrices.
func (g *Graph) Add(a, b *Node) *Node      { return g.two(gorgonia.Add, a, b) }
func (g *Graph) Subtract(a, b *Node) *Node { return g.two(gorgonia.Sub, a, b) }
func (g *Graph) Scale(a, b *Node) *Node    { return g.two(gorgonia.HadamardProd, a, b) }
func (g *Graph) Multiply(a, b *Node) *Node { return g.two(gorgonia.Mul, a, b) }

// Sigmoid, Tanh, Softplus, Exp and Rectify (the larger of the element and 0) go
// element by element, too.
func (g *Graph) Sigmoid(a *Node) *Node  { return g.one(gorgonia.Sigmoid, a) }
func (g *Graph) Tanh(a *Node) *Node     { return g.one(gorgonia.Tanh, a) }
func (g *Graph) Softplus(a *Node) *Node { return g.one(gorgonia.Softplus, a) }
func (g *Graph) Exp(a *Node) *Node      { return g.one(gorgonia.Exp, a) }
func (g *Graph) Rectify(a *Node) *Node  { return g.one(gorgonia.Rectify, a) }

// Mean is that of all elements.
func (g *Graph) Mean(a *Node) *Node {
	return g.one(func(a *Node) (*Node, error) { return gorgonia.Mean(a) }, a)
}

// Layer is an affine function of several inputs. Its tensor has the columns of one
// input after the other, and one of the bias among them.
type Layer struct {
	bias  *Node
	parts []*Node
}

// Dense makes a layer of inputs of the widths; the column of the bias comes after so
// many of them.
func (g *Graph) Dense(t *Tensor, biasAfter int, widths ...int) Layer {
	var l Layer
	at := 0
	for i := range len(widths) + 1 {
		if i == biasAfter {
			l.bias = g.Multiply(g.ones, g.weights(t, at, at+1))
			at++
		}
		if i < len(widths) {
			l.parts = append(l.parts, g.weights(t, at, at+widths[i]))
			at += widths[i]
		}
	}
	return l
}

// Apply is what the layer makes of its inputs; those that are missing are zeros.
func (g *Graph) Apply(l Layer, inputs ...*Node) *Node {
	sum := l.bias
	for i, x := range inputs {
		sum = g.Add(sum, g.Multiply(x, l.parts[i]))
	}
	return sum
}

// GRU reads a sequence from a state (nil is zeros) and returns the state after each
// input, as [GRU.Next] does.
func (g *Graph) GRU(layer *GRU, inputs []*Node, state *Node) []*Node {
	var gates [3]Layer
	for i, t := range layer.Parts() {
		gates[i] = g.Dense(t, 1, layer.inputs, layer.hidden)
	}
	var states []*Node
	for _, x := range inputs {
		if state == nil {
			state = g.Scale(g.Sigmoid(g.Apply(gates[0], x)), g.Tanh(g.Apply(gates[2], x)))
		} else {
			z, r := g.Sigmoid(g.Apply(gates[0], x, state)), g.Sigmoid(g.Apply(gates[1], x, state))
			fresh := g.Tanh(g.Apply(gates[2], x, g.Scale(r, state)))
			state = g.Add(state, g.Scale(z, g.Subtract(fresh, state)))
		}
		states = append(states, state)
	}
	return states
}

// Compile ends the building of the graph, of which this is the loss, one number.
func (g *Graph) Compile(loss *Node) error {
	if g.err != nil {
		return g.err
	}
	var nodes gorgonia.Nodes
	for _, one := range g.leaves {
		nodes = append(nodes, one.node)
	}
	gorgonia.Read(loss, &g.loss)
	if _, err := gorgonia.Grad(loss, nodes...); err != nil {
		return err
	}
	g.machine = gorgonia.NewTapeMachine(g.graph, gorgonia.BindDualValues(nodes...))
	return nil
}

// Learn runs the graph on what the inputs and the tensors are now, adds to the
// gradients of the tensors, and returns the loss.
func (g *Graph) Learn() (loss float64, err error) {
	for _, one := range g.leaves {
		for r := range one.of.Rows {
			for c, value := range one.of.Row(r)[one.from:one.to] {
				one.values[c*one.of.Rows+r] = value
			}
		}
	}
	g.machine.Reset()
	if err := g.machine.RunAll(); err != nil {
		return 0, err
	}
	for _, one := range g.leaves {
		value, err := one.node.Grad()
		if err != nil {
			return 0, err
		}
		slopes := value.Data().([]float64)
		for r := range one.of.Rows {
			row := one.of.slope(r)[one.from:one.to]
			for c := range row {
				row[c] += slopes[c*one.of.Rows+r]
			}
		}
		clear(slopes)
	}
	return g.loss.Data().(float64), nil
}

// Close frees what Gorgonia holds.
func (g *Graph) Close() error {
	if g.machine == nil {
		return nil
	}
	return g.machine.Close()
}
