package forecast

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/nn"
)

// encoder turns a sequence of numbers into a context, the input of the decoder.
type encoder interface {
	width() int
	parts() []*nn.Tensor
	// forward keeps what backward needs until the next call.
	forward(sequence []float64) (context []float64)
	// backward adds to the gradients what the blame of the context means.
	backward(blame []float64)
}

// gru is an encoder of gated recurrent units; its context is the last state.
type gru struct {
	layer *nn.GRU
	input [1]float64
	blame [][]float64
}

func newGRU(hidden int, random *rand.Rand) *gru {
	return &gru{layer: nn.NewGRU(1, hidden, random)}
}

func (g *gru) width() int          { return g.layer.Hidden() }
func (g *gru) parts() []*nn.Tensor { return g.layer.Parts() }

func (g *gru) forward(sequence []float64) (context []float64) {
	g.layer.Begin(nil)
	for _, x := range sequence {
		g.input[0] = x
		context = g.layer.Next(g.input[:])
	}
	g.blame = make([][]float64, len(sequence))
	return context
}

func (g *gru) backward(blame []float64) {
	g.blame[len(g.blame)-1] = blame
	g.layer.Backward(g.blame)
}
