package forecast

import (
	"math"
	"math/rand/v2"
)

// tensor is a matrix of weights with its gradient and what Adam remembers.
type tensor struct {
	rows, columns   int
	value, gradient []float64
	first, second   []float64 // moments
}

func newTensor(rows, columns int, random *rand.Rand) *tensor {
	n := rows * columns
	t := &tensor{rows: rows, columns: columns, value: make([]float64, n), gradient: make([]float64, n), first: make([]float64, n), second: make([]float64, n)}
	if random != nil {
		bound := math.Sqrt(6 / float64(rows+columns)) // Glorot and Bengio, 2010
		for i := range t.value {
			t.value[i] = bound * (2*random.Float64() - 1)
		}
	}
	return t
}

func (t *tensor) row(i int) []float64   { return t.value[i*t.columns : (i+1)*t.columns] }
func (t *tensor) slope(i int) []float64 { return t.gradient[i*t.columns : (i+1)*t.columns] }

// apply adds the product with x to out.
func (t *tensor) apply(x, out []float64) {
	for i := range out {
		row := t.row(i)
		sum := 0.0
		for j, v := range x {
			sum += row[j] * v
		}
		out[i] += sum
	}
}

// learn adds what the blame of each output means for the weights, and to back
// what it means for x; back may be nil.
func (t *tensor) learn(x, blame, back []float64) {
	for i, b := range blame {
		if b == 0 {
			continue
		}
		slope := t.slope(i)
		for j, v := range x {
			slope[j] += b * v
		}
		if back != nil {
			row := t.row(i)
			for j := range back {
				back[j] += b * row[j]
			}
		}
	}
}

// adam is the optimizer of Kingma and Ba, 2015.
type adam struct {
	rate  float64
	steps int
}

const (
	adamFirst, adamSecond, adamSmall = 0.9, 0.999, 1e-8
	// longestStep bounds the length of a batch's gradient: recurrent networks
	// have slopes that explode (Pascanu and others, 2013).
	longestStep = 1.0
)

func (a *adam) step(parts []*tensor) {
	a.steps++
	length := 0.0
	for _, t := range parts {
		for _, g := range t.gradient {
			length += g * g
		}
	}
	shrink := 1.0
	if length = math.Sqrt(length); length > longestStep {
		shrink = longestStep / length
	}
	firstBias, secondBias := 1-math.Pow(adamFirst, float64(a.steps)), 1-math.Pow(adamSecond, float64(a.steps))
	for _, t := range parts {
		for i, g := range t.gradient {
			g *= shrink
			t.first[i] = adamFirst*t.first[i] + (1-adamFirst)*g
			t.second[i] = adamSecond*t.second[i] + (1-adamSecond)*g*g
			t.value[i] -= a.rate * (t.first[i] / firstBias) / (math.Sqrt(t.second[i]/secondBias) + adamSmall)
			t.gradient[i] = 0
		}
	}
}

func sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// encoder turns a sequence of numbers into a context, the input of the decoder.
type encoder interface {
	width() int
	parts() []*tensor
	// forward keeps what backward needs until the next call.
	forward(sequence []float64) (context []float64)
	// backward adds to the gradients what the blame of the context means.
	backward(blame []float64)
}
