package backend

import (
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/regression"
)

// network is a feed-forward network with tanh units between its layers and a
// linear output. Networks of this size (some hundred weights) need no library:
// docs/decisions/0005 has the reasons.
type network struct {
	sizes []int
	// weights has the layers one after the other: for each unit the weights of
	// its inputs, then its bias. Several networks may lie in one vector.
	weights []float64
}

// weightsFor is how many weights a network of these sizes has.
func weightsFor(sizes []int) int {
	total := 0
	for l := 1; l < len(sizes); l++ {
		total += sizes[l] * (sizes[l-1] + 1)
	}
	return total
}

// start draws the weights so that the units' inputs vary by about 1 (Glorot and
// Bengio 2010).
func (n network) start(random *rand.Rand) {
	at := 0
	for l := 1; l < len(n.sizes); l++ {
		width := math.Sqrt(2 / float64(n.sizes[l-1]+n.sizes[l]))
		for range n.sizes[l] {
			for range n.sizes[l-1] {
				n.weights[at] = width * random.NormFloat64()
				at++
			}
			n.weights[at] = 0
			at++
		}
	}
}

// forward returns the values of all layers, the input first.
func (n network) forward(input []float64) [][]float64 {
	values := make([][]float64, len(n.sizes))
	values[0] = input
	at := 0
	for l := 1; l < len(n.sizes); l++ {
		values[l] = make([]float64, n.sizes[l])
		for unit := range values[l] {
			end := at + n.sizes[l-1]
			sum := regression.Dot(n.weights[at:end], values[l-1]) + n.weights[end]
			at = end + 1
			if l < len(n.sizes)-1 {
				sum = math.Tanh(sum)
			}
			values[l][unit] = sum
		}
	}
	return values
}

// backward adds to gradient the derivatives by the weights of a loss whose
// derivatives by the output are given.
func (n network) backward(values [][]float64, output, gradient []float64) {
	at := len(n.weights)
	for l := len(n.sizes) - 1; l > 0; l-- {
		below := make([]float64, n.sizes[l-1])
		start := at - n.sizes[l]*(n.sizes[l-1]+1)
		at = start
		for unit, slope := range output {
			if l < len(n.sizes)-1 {
				slope *= 1 - values[l][unit]*values[l][unit]
			}
			for i, value := range values[l-1] {
				gradient[at+i] += slope * value
				below[i] += slope * n.weights[at+i]
			}
			gradient[at+n.sizes[l-1]] += slope
			at += n.sizes[l-1] + 1
		}
		at = start
		output = below
	}
}

// loss is how targets of different units are made one number (DOPE-ML, section
// 6.1.3): the squared error in units of the target's spread, and the percentage
// error of what the target stands for. The percentage is smoothed near 0, where
// it has no derivative.
type loss struct {
	scale       scale
	logarithmic []bool
}

// share weighs the percentage error against the squared one; few is the least
// value by which an error is divided.
const (
	share  = 0.2
	few    = 0.05
	smooth = 1e-4
)

// of is the loss of a prediction, and its derivatives; targets that are NaN do
// not count.
func (l loss) of(predicted, target []float64) (total float64, slopes []float64) {
	slopes = make([]float64, len(predicted))
	for o, t := range target {
		if math.IsNaN(t) {
			continue
		}
		off := predicted[o] - t
		total += off * off
		slopes[o] = 2 * off
		spread := l.scale.targetSD[o]
		slope := spread / max(math.Abs(l.scale.targetMean[o]+spread*t), few)
		relative := off * slope
		if l.logarithmic[o] {
			exponent := spread * off
			if exponent > 1 { // beyond, a straight line: no explosions at the start
				relative, slope = math.E-1+math.E*(exponent-1), math.E*spread
			} else {
				relative, slope = math.Exp(exponent)-1, math.Exp(exponent)*spread
			}
		}
		size := math.Sqrt(relative*relative + smooth)
		total += share * (size - math.Sqrt(smooth))
		slopes[o] += share * relative / size * slope
	}
	return total, slopes
}
