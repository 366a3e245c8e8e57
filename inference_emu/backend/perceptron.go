package backend

import "math/rand/v2"

// learner is a model of neural networks, in units of a scale.
type learner interface {
	// gradient adds the derivatives of the loss of one example to gradient, and
	// returns the loss.
	gradient(input, target, gradient []float64) float64
	// weights are all that is learned; a change of them changes the learner.
	weights() []float64
	// predict gives expected values, and how far the model's own choices are apart.
	predict(input []float64) (mean, variance []float64)
}

// hidden is how many units a hidden layer has.
const hidden = 16

// perceptron is a multi-layer perceptron: from the columns to the targets.
type perceptron struct {
	network network
	loss    loss
}

func newPerceptron(loss loss, random *rand.Rand) learner {
	sizes := []int{len(loss.scale.columns), hidden, len(loss.logarithmic)}
	p := &perceptron{network: network{sizes: sizes, weights: make([]float64, weightsFor(sizes))}, loss: loss}
	p.network.start(random)
	return p
}

func (p *perceptron) weights() []float64 { return p.network.weights }

func (p *perceptron) gradient(input, target, gradient []float64) float64 {
	values := p.network.forward(input)
	total, slopes := p.loss.of(values[len(values)-1], target)
	p.network.backward(values, slopes, gradient)
	return total
}

func (p *perceptron) predict(input []float64) (mean, variance []float64) {
	values := p.network.forward(input)
	mean = values[len(values)-1]
	return mean, make([]float64, len(mean))
}
