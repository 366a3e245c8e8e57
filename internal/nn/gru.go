package nn

import (
	"math"
	"math/rand/v2"
)

// GRU is a layer of gated recurrent units (Cho and others, 2014). It reads a
// sequence one input at a time, from [GRU.Begin] on, and learns from all of it
// at once, in [GRU.Backward]. The states that it returns are its own memory,
// good until the next Begin.
type GRU struct {
	inputs, hidden       int
	update, reset, fresh *Tensor // of the input, 1 and the state
	length               int     // of the sequence that was read
	// of each step: input, 1 and state; gates; candidate; input, 1 and the state
	// that was let through
	seen, z, r, candidate, passed [][]float64
	states                        [][]float64
}

// NewGRU is a layer of so many units that reads vectors of so many inputs.
func NewGRU(inputs, hidden int, random *rand.Rand) *GRU {
	width := inputs + 1 + hidden
	return &GRU{
		inputs: inputs, hidden: hidden,
		update: NewTensor(hidden, width, random), reset: NewTensor(hidden, width, random), fresh: NewTensor(hidden, width, random),
		states: [][]float64{make([]float64, hidden)},
	}
}

// Hidden is the number of units, and the width of a state.
func (g *GRU) Hidden() int { return g.hidden }

// Parts are the weights.
func (g *GRU) Parts() []*Tensor { return []*Tensor{g.update, g.reset, g.fresh} }

// Begin starts a sequence from a state; nil is zeros.
func (g *GRU) Begin(from []float64) {
	g.length = 0
	clear(g.states[0])
	copy(g.states[0], from)
}

// step makes place for one more.
func (g *GRU) step() (t int) {
	t, width := g.length, g.inputs+1+g.hidden
	if len(g.seen) == t {
		g.seen, g.passed = append(g.seen, make([]float64, width)), append(g.passed, make([]float64, width))
		g.z, g.r, g.candidate = append(g.z, make([]float64, g.hidden)), append(g.r, make([]float64, g.hidden)), append(g.candidate, make([]float64, g.hidden))
		g.states = append(g.states, make([]float64, g.hidden))
	}
	g.length++
	return t
}

// Next reads one input and returns the state behind it.
func (g *GRU) Next(x []float64) []float64 {
	t := g.step()
	before, seen, passed := g.states[t], g.seen[t], g.passed[t]
	copy(seen, x)
	copy(passed, x)
	seen[g.inputs], passed[g.inputs] = 1, 1
	copy(seen[g.inputs+1:], before)
	z, r, candidate := g.z[t], g.r[t], g.candidate[t]
	clear(z)
	clear(r)
	clear(candidate)
	g.update.Apply(seen, z)
	g.reset.Apply(seen, r)
	for i := range z {
		z[i], r[i] = Sigmoid(z[i]), Sigmoid(r[i])
		passed[g.inputs+1+i] = r[i] * before[i]
	}
	g.fresh.Apply(passed, candidate)
	after := g.states[t+1]
	for i := range z {
		candidate[i] = math.Tanh(candidate[i])
		after[i] = (1-z[i])*before[i] + z[i]*candidate[i]
	}
	return after
}

// Backward adds to the gradients what the blame of the states means, and returns
// what it means for the state of Begin. Blame has a row for each step, nil where
// nothing was made of its state.
func (g *GRU) Backward(blame [][]float64) (ofBegin []float64) {
	h, first := g.hidden, g.inputs+1
	later := make([]float64, h)
	ofZ, ofR, ofFresh := make([]float64, h), make([]float64, h), make([]float64, h)
	throughPassed, throughSeen := make([]float64, first+h), make([]float64, first+h)
	for t := g.length - 1; t >= 0; t-- {
		for i, b := range blame[t] {
			later[i] += b
		}
		before := g.states[t]
		clear(throughPassed)
		clear(throughSeen)
		for i := range h {
			ofFresh[i] = later[i] * g.z[t][i] * (1 - g.candidate[t][i]*g.candidate[t][i])
			ofZ[i] = later[i] * (g.candidate[t][i] - before[i]) * g.z[t][i] * (1 - g.z[t][i])
		}
		g.fresh.Learn(g.passed[t], ofFresh, throughPassed)
		for i := range h {
			ofR[i] = throughPassed[first+i] * before[i] * g.r[t][i] * (1 - g.r[t][i])
		}
		g.update.Learn(g.seen[t], ofZ, throughSeen)
		g.reset.Learn(g.seen[t], ofR, throughSeen)
		for i := range h {
			later[i] = later[i]*(1-g.z[t][i]) + throughPassed[first+i]*g.r[t][i] + throughSeen[first+i]
		}
	}
	return later
}

// Twin is a layer with the same weights, for another sequence at the same time.
func (g *GRU) Twin() *GRU {
	return &GRU{inputs: g.inputs, hidden: g.hidden, update: g.update, reset: g.reset, fresh: g.fresh, states: [][]float64{make([]float64, g.hidden)}}
}
