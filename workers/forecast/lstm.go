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

func (b *bidirectional) width() int          { return 2 * b.onward.hidden }
func (b *bidirectional) parts() []*nn.Tensor { return append(b.onward.parts(), b.back.parts()...) }

func (b *bidirectional) forward(sequence []float64) []float64 {
	b.reversed = append(b.reversed[:0], sequence...)
	slices.Reverse(b.reversed)
	b.context = append(append(b.context[:0], b.onward.forward(sequence)...), b.back.forward(b.reversed)...)
	return b.context
}

func (b *bidirectional) backward(blame []float64) {
	b.onward.backward(blame[:b.onward.hidden])
	b.back.backward(blame[b.onward.hidden:])
}

// lstm is one of the layers.
type lstm struct {
	hidden int
	gates  *nn.Tensor // input, forget, output, candidate: of the input, 1 and the state
	// of each step
	seen, open    [][]float64
	cells, states [][]float64
}

func newLSTM(hidden int, random *rand.Rand) *lstm {
	l := &lstm{hidden: hidden, gates: nn.NewTensor(4*hidden, hidden+2, random)}
	for i := hidden; i < 2*hidden; i++ {
		l.gates.Row(i)[1] = 1 // to forget nothing at first (Jozefowicz and others, 2015)
	}
	return l
}

func (l *lstm) parts() []*nn.Tensor { return []*nn.Tensor{l.gates} }

func (l *lstm) room(steps int) {
	for len(l.seen) < steps {
		l.seen, l.open = append(l.seen, make([]float64, l.hidden+2)), append(l.open, make([]float64, 4*l.hidden))
	}
	for len(l.states) < steps+1 {
		l.states, l.cells = append(l.states, make([]float64, l.hidden)), append(l.cells, make([]float64, l.hidden))
	}
	l.seen, l.open, l.states, l.cells = l.seen[:steps], l.open[:steps], l.states[:steps+1], l.cells[:steps+1]
}

func (l *lstm) forward(sequence []float64) []float64 {
	l.room(len(sequence))
	clear(l.states[0])
	clear(l.cells[0])
	h := l.hidden
	for t, x := range sequence {
		seen, open := l.seen[t], l.open[t]
		seen[0], seen[1] = x, 1
		copy(seen[2:], l.states[t])
		clear(open)
		l.gates.Apply(seen, open)
		for i := range h {
			open[i], open[h+i], open[2*h+i], open[3*h+i] = nn.Sigmoid(open[i]), nn.Sigmoid(open[h+i]), nn.Sigmoid(open[2*h+i]), math.Tanh(open[3*h+i])
			l.cells[t+1][i] = open[h+i]*l.cells[t][i] + open[i]*open[3*h+i]
			l.states[t+1][i] = open[2*h+i] * math.Tanh(l.cells[t+1][i])
		}
	}
	return l.states[len(sequence)]
}

func (l *lstm) backward(blame []float64) {
	h := l.hidden
	ofState, ofCell := append([]float64(nil), blame...), make([]float64, h)
	ofGates, through := make([]float64, 4*h), make([]float64, h+2)
	for t := len(l.seen) - 1; t >= 0; t-- {
		open := l.open[t]
		for i := range h {
			squashed := math.Tanh(l.cells[t+1][i])
			in, forget, out, candidate := open[i], open[h+i], open[2*h+i], open[3*h+i]
			ofCell[i] += ofState[i] * out * (1 - squashed*squashed)
			ofGates[i] = ofCell[i] * candidate * in * (1 - in)
			ofGates[h+i] = ofCell[i] * l.cells[t][i] * forget * (1 - forget)
			ofGates[2*h+i] = ofState[i] * squashed * out * (1 - out)
			ofGates[3*h+i] = ofCell[i] * in * (1 - candidate*candidate)
			ofCell[i] *= forget
		}
		clear(through)
		l.gates.Learn(l.seen[t], ofGates, through)
		copy(ofState, through[2:])
	}
}
