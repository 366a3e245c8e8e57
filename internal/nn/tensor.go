// Package nn has the layers of our networks over time: weights with their
// gradients, Adam, gated recurrent units, and the graphs from which Gorgonia finds
// the gradients ([Graph]).
//
// What a network says is computed without a graph, since one sample is faster so;
// tests hold that against the graph. Its one invariant: [Graph.Learn] adds to the
// gradients the derivatives of the loss, which tests hold against differences. It
// does no I/O; what is random comes from the generator that it is given. Nothing
// here is safe for concurrent use.
package nn

import (
	"math"
	"math/rand/v2"
)

// Tensor is a matrix of weights with its gradient and what Adam remembers.
type Tensor struct {
	Rows, Columns int
	// Value and Gradient are by rows.
	Value, Gradient []float64
	first, second   []float64 // moments
}

// NewTensor draws weights so that outputs vary about as inputs do (Glorot and
// Bengio, 2010); without a generator they are 0.
func NewTensor(rows, columns int, random *rand.Rand) *Tensor {
	t := Vector(make([]float64, rows*columns))
	t.Rows, t.Columns = rows, columns
	if random != nil {
		bound := math.Sqrt(6 / float64(rows+columns))
		for i := range t.Value {
			t.Value[i] = bound * (2*random.Float64() - 1)
		}
	}
	return t
}

// Vector has the values, whose memory it shares, in one row.
func Vector(values []float64) *Tensor {
	n := len(values)
	return &Tensor{Rows: 1, Columns: n, Value: values, Gradient: make([]float64, n), first: make([]float64, n), second: make([]float64, n)}
}

// Row is the weights of an output.
func (t *Tensor) Row(i int) []float64 { return t.Value[i*t.Columns : (i+1)*t.Columns] }

func (t *Tensor) slope(i int) []float64 { return t.Gradient[i*t.Columns : (i+1)*t.Columns] }

// Apply adds the product with x to out, which may have fewer values than there
// are rows.
func (t *Tensor) Apply(x, out []float64) {
	for i := range out {
		row := t.Row(i)
		sum := 0.0
		for j, v := range x {
			sum += row[j] * v
		}
		out[i] += sum
	}
}

// Adam is the optimizer of Kingma and Ba, 2015. Set the rate before each step.
type Adam struct {
	Rate float64
	// Decay is by what share of the rate weights shrink (Loshchilov and Hutter, 2019).
	Decay float64
	// Longest bounds the length of a gradient, since recurrent networks have slopes
	// that explode (Pascanu and others, 2013); 0: no bound.
	Longest float64
	steps   int
}

const adamFirst, adamSecond, adamSmall = 0.9, 0.999, 1e-8

// LongestStep is the bound that our networks over time have.
const LongestStep = 1.0

// Step moves the weights against their gradients, and clears these.
func (a *Adam) Step(parts []*Tensor) {
	a.steps++
	length := 0.0
	for _, t := range parts {
		for _, g := range t.Gradient {
			length += g * g
		}
	}
	shrink := 1.0
	if length = math.Sqrt(length); a.Longest > 0 && length > a.Longest {
		shrink = a.Longest / length
	}
	firstBias, secondBias := 1-math.Pow(adamFirst, float64(a.steps)), 1-math.Pow(adamSecond, float64(a.steps))
	for _, t := range parts {
		for i, g := range t.Gradient {
			g *= shrink
			t.first[i] = adamFirst*t.first[i] + (1-adamFirst)*g
			t.second[i] = adamSecond*t.second[i] + (1-adamSecond)*g*g
			t.Value[i] -= a.Rate * (t.first[i]/firstBias/(math.Sqrt(t.second[i]/secondBias)+adamSmall) + a.Decay*t.Value[i])
			t.Gradient[i] = 0
		}
	}
}

// Sigmoid is the logistic function.
func Sigmoid(x float64) float64 { return 1 / (1 + math.Exp(-x)) }

// Softplus is a smooth rectifier; its slope is [Sigmoid].
func Softplus(x float64) float64 {
	if x > 30 {
		return x
	}
	return math.Log1p(math.Exp(x))
}
