package forecast

import (
	"math"
	"math/rand/v2"
)

// gru is an encoder of gated recurrent units (Cho and others, 2014).
type gru struct {
	hidden               int
	update, reset, fresh *tensor // of the input, the state, and 1
	// of each step: input with state, gates, candidate, input with the state
	// that was let through.
	seen, z, r, candidate, passed [][]float64
	states                        [][]float64
}

func newGRU(hidden int, random *rand.Rand) *gru {
	return &gru{
		hidden: hidden,
		update: newTensor(hidden, hidden+2, random), reset: newTensor(hidden, hidden+2, random), fresh: newTensor(hidden, hidden+2, random),
	}
}

func (g *gru) width() int       { return g.hidden }
func (g *gru) parts() []*tensor { return []*tensor{g.update, g.reset, g.fresh} }

// room makes place for so many steps.
func (g *gru) room(steps int) {
	for len(g.seen) < steps {
		g.seen, g.passed = append(g.seen, make([]float64, g.hidden+2)), append(g.passed, make([]float64, g.hidden+2))
		g.z, g.r, g.candidate = append(g.z, make([]float64, g.hidden)), append(g.r, make([]float64, g.hidden)), append(g.candidate, make([]float64, g.hidden))
	}
	for len(g.states) < steps+1 {
		g.states = append(g.states, make([]float64, g.hidden))
	}
	g.seen, g.passed, g.z, g.r, g.candidate, g.states = g.seen[:steps], g.passed[:steps], g.z[:steps], g.r[:steps], g.candidate[:steps], g.states[:steps+1]
}

func (g *gru) forward(sequence []float64) []float64 {
	g.room(len(sequence))
	clear(g.states[0])
	for t, x := range sequence {
		before, seen, passed := g.states[t], g.seen[t], g.passed[t]
		seen[0], seen[1] = x, 1
		copy(seen[2:], before)
		z, r, candidate := g.z[t], g.r[t], g.candidate[t]
		clear(z)
		clear(r)
		clear(candidate)
		g.update.apply(seen, z)
		g.reset.apply(seen, r)
		passed[0], passed[1] = x, 1
		for i := range z {
			z[i], r[i] = sigmoid(z[i]), sigmoid(r[i])
			passed[2+i] = r[i] * before[i]
		}
		g.fresh.apply(passed, candidate)
		after := g.states[t+1]
		for i := range z {
			candidate[i] = math.Tanh(candidate[i])
			after[i] = (1-z[i])*before[i] + z[i]*candidate[i]
		}
	}
	return g.states[len(sequence)]
}

func (g *gru) backward(blame []float64) {
	h := g.hidden
	later := append([]float64(nil), blame...)
	ofZ, ofR, ofFresh := make([]float64, h), make([]float64, h), make([]float64, h)
	throughPassed, throughSeen := make([]float64, h+2), make([]float64, h+2)
	for t := len(g.seen) - 1; t >= 0; t-- {
		before := g.states[t]
		clear(throughPassed)
		clear(throughSeen)
		for i := range h {
			ofFresh[i] = later[i] * g.z[t][i] * (1 - g.candidate[t][i]*g.candidate[t][i])
			ofZ[i] = later[i] * (g.candidate[t][i] - before[i]) * g.z[t][i] * (1 - g.z[t][i])
		}
		g.fresh.learn(g.passed[t], ofFresh, throughPassed)
		for i := range h {
			ofR[i] = throughPassed[2+i] * before[i] * g.r[t][i] * (1 - g.r[t][i])
		}
		g.update.learn(g.seen[t], ofZ, throughSeen)
		g.reset.learn(g.seen[t], ofR, throughSeen)
		for i := range h {
			later[i] = later[i]*(1-g.z[t][i]) + throughPassed[2+i]*g.r[t][i] + throughSeen[2+i]
		}
	}
}
