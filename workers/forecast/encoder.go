package forecast

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/nn"
)

// encoder turns a sequence of numbers into a context, the input of the decoder.
type encoder interface {
	parts() []*nn.Tensor
	// widths are those of the parts of the context.
	widths() []int
	forward(sequence []float64) (context []float64)
	// build is the same for a batch, of a node for each number; it returns a node
	// for each part.
	build(g *nn.Graph, sequence []*nn.Node) []*nn.Node
}

// gru is an encoder of gated recurrent units; its context is the last state.
type gru struct {
	layer *nn.GRU
	input [1]float64
}

func newGRU(hidden int, random *rand.Rand) *gru {
	return &gru{layer: nn.NewGRU(1, hidden, random)}
}

func (g *gru) widths() []int       { return []int{g.layer.Hidden()} }
func (g *gru) parts() []*nn.Tensor { return g.layer.Parts() }

func (g *gru) forward(sequence []float64) (context []float64) {
	g.layer.Begin(nil)
	for _, x := range sequence {
		g.input[0] = x
		context = g.layer.Next(g.input[:])
	}
	return context
}

func (g *gru) build(graph *nn.Graph, sequence []*nn.Node) []*nn.Node {
	states := graph.GRU(g.layer, sequence, nil)
	return states[len(states)-1:]
}
