package nn

import (
	"math"
	"math/rand/v2"
)

// GRU is a layer of gated recurrent units (Cho and others, 2014). It reads a
// sequence one input at a time, from [GRU.Begin] on; [Graph.GRU] learns. The states
// that it returns are its own memory, good until the next input.
type GRU struct {
	inputs, hidden       int
	update, reset, fresh *Tensor // of the input, 1 and the state
	state                []float64
	z, r, candidate      []float64
	seen                 []float64 // input, 1 and the state, or what of it the reset gate lets through
}

// NewGRU is a layer of so many units that reads vectors of so many inputs.
func NewGRU(inputs, hidden int, random *rand.Rand) *GRU {
	width := inputs + 1 + hidden
	g := &GRU{inputs: inputs, hidden: hidden, update: NewTensor(hidden, width, random), reset: NewTensor(hidden, width, random), fresh: NewTensor(hidden, width, random)}
	return g.Twin()
}

// Twin is a layer with the same weights, for another sequence at the same time.
func (g *GRU) Twin() *GRU {
	vector := func() []float64 { return make([]float64, g.hidden) }
	return &GRU{
		inputs: g.inputs, hidden: g.hidden, update: g.update, reset: g.reset, fresh: g.fresh,
		state: vector(), z: vector(), r: vector(), candidate: vector(), seen: make([]float64, g.inputs+1+g.hidden),
	}
}

// Parts are the weights.
func (g *GRU) Parts() []*Tensor { return []*Tensor{g.update, g.reset, g.fresh} }

// Begin starts a sequence from a state; nil is zeros.
func (g *GRU) Begin(from []float64) {
	clear(g.state)
	copy(g.state, from)
}

// Next reads one input and returns the state after it.
func (g *GRU) Next(x []float64) []float64 {
	copy(g.seen, x)
	g.seen[g.inputs] = 1
	passed := g.seen[g.inputs+1:]
	copy(passed, g.state)
	clear(g.z)
	clear(g.r)
	clear(g.candidate)
	g.update.Apply(g.seen, g.z)
	g.reset.Apply(g.seen, g.r)
	for i := range g.z {
		g.z[i] = Sigmoid(g.z[i])
		passed[i] *= Sigmoid(g.r[i])
	}
	g.fresh.Apply(g.seen, g.candidate)
	for i, z := range g.z {
		g.state[i] = (1-z)*g.state[i] + z*math.Tanh(g.candidate[i])
	}
	return g.state
}
