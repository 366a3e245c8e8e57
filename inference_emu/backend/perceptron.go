package backend

import "math/rand/v2"

// hidden is how many units a hidden layer has.
const hidden = 16

// perceptron is a multi-layer perceptron, from the columns to the targets, in
// units of a scale.
type perceptron struct {
	network network
	loss    loss
}

func newPerceptron(loss loss, random *rand.Rand) *perceptron {
	sizes := []int{len(loss.scale.columns), hidden, len(loss.logarithmic)}
	p := &perceptron{network: network{sizes: sizes, weights: make([]float64, weightsFor(sizes))}, loss: loss}
	p.network.start(random)
	return p
}

// gradient adds the derivatives of the loss of one example to gradient, and
// returns the loss.
func (p *perceptron) gradient(input, target, gradient []float64) float64 {
	values := p.network.forward(input)
	total, slopes := p.loss.of(values[len(values)-1], target)
	p.network.backward(values, slopes, gradient)
	return total
}

func (p *perceptron) predict(input []float64) []float64 {
	values := p.network.forward(input)
	return values[len(values)-1]
}
