package forecast

import (
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/nn"
)

// bidirectional is an encoder of two layers of long short-term memory
// (Hochreiter and Schmidhuber, 1997), one from each end of the sequence.
type bidirectional struct {
	onward, back *lstm
	context      []float64
	reversed     []float64
}

func newBidirectional(hidden int, random *rand.Rand) *bidirectional {
	return &bidirectional{onward: newLSTM(hidden, random), back: newLSTM(hidden, random)}
}

func (b *bidirectional) widths() []int       { return []int{b.onward.hidden, b.back.hidden} }
func (b *bidirectional) parts() []*nn.Tensor { return []*nn.Tensor{b.onward.gates, b.back.gates} }

func (b *bidirectional) forward(sequence []float64) []float64 {
	b.reversed = append(b.reversed[:0], sequence...)
	slices.Reverse(b.reversed)
	b.context = append(append(b.context[:0], b.onward.forward(sequence)...), b.back.forward(b.reversed)...)
	return b.context
}

func (b *bidirectional) build(g *nn.Graph, sequence []*nn.Node) []*nn.Node {
	reversed := slices.Clone(sequence)
	slices.Reverse(reversed)
	return []*nn.Node{b.onward.build(g, sequence), b.back.build(g, reversed)}
}

// lstm is one of the layers.
type lstm struct {
	hidden      int
	gates       *nn.Tensor // input, forget, output, candidate: of the input, 1 and the state
	seen, open  []float64
	cell, state []float64
}

func newLSTM(hidden int, random *rand.Rand) *lstm {
	l := &lstm{
		hidden: hidden, gates: nn.NewTensor(4*hidden, hidden+2, random), seen: make([]float64, hidden+2), open: make([]float64, 4*hidden),
		cell: make([]float64, hidden), state: make([]float64, hidden),
	}
	for i := hidden; i < 2*hidden; i++ {
		l.gates.Row(i)[1] = 1 // to forget nothing at first (Jozefowicz and others, 2015)
	}
	return l
}

func (l *lstm) forward(sequence []float64) []float64 {
	clear(l.state)
	clear(l.cell)
	h := l.hidden
	for _, x := range sequence {
		l.seen[0], l.seen[1] = x, 1
		copy(l.seen[2:], l.state)
		clear(l.open)
		l.gates.Apply(l.seen, l.open)
		for i := range h {
			in, forget, out, candidate := nn.Sigmoid(l.open[i]), nn.Sigmoid(l.open[h+i]), nn.Sigmoid(l.open[2*h+i]), math.Tanh(l.open[3*h+i])
			l.cell[i] = forget*l.cell[i] + in*candidate
			l.state[i] = out * math.Tanh(l.cell[i])
		}
	}
	return l.state
}

func (l *lstm) build(g *nn.Graph, sequence []*nn.Node) (state *nn.Node) {
	var gates [4]nn.Layer
	for i := range gates {
		gates[i] = g.Dense(l.gates.Cut(i*l.hidden, (i+1)*l.hidden), 1, 1, l.hidden)
	}
	var cell *nn.Node
	for _, x := range sequence {
		seen := []*nn.Node{x}
		if state != nil {
			seen = append(seen, state)
		}
		made := g.Scale(g.Sigmoid(g.Apply(gates[0], seen...)), g.Tanh(g.Apply(gates[3], seen...)))
		if cell != nil {
			made = g.Add(made, g.Scale(g.Sigmoid(g.Apply(gates[1], seen...)), cell))
		}
		cell = made
		state = g.Scale(g.Sigmoid(g.Apply(gates[2], seen...)), g.Tanh(cell))
	}
	return state
}
