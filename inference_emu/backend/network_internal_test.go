package backend

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"
)

// exampleLoss has a relative and a plain target, and two columns of condition.
func exampleLoss() loss {
	return loss{
		scale: scale{columns: []int{0, 1, 2, 3, 4}, condition: 2, targetMean: []float64{1, 0.5, -2}, targetSD: []float64{0.7, 0.2, 1.5}},

		logarithmic: []bool{true, false, true},
	}
}

func draw(random *rand.Rand, n int) []float64 {
	x := make([]float64, n)
	for i := range x {
		x[i] = random.NormFloat64()
	}
	return x
}

// checkGradient compares derivatives with differences of the loss.
func checkGradient(t *rapid.T, weights []float64, total func(gradient []float64) float64) {
	gradient := make([]float64, len(weights))
	total(gradient)
	scratch := make([]float64, len(weights))
	for i := range weights {
		const step = 1e-5
		was := weights[i]
		weights[i] = was + step
		high := total(scratch)
		weights[i] = was - step
		low := total(scratch)
		weights[i] = was
		if difference := (high - low) / (2 * step); math.Abs(difference-gradient[i]) > 1e-4*(1+math.Abs(difference)) {
			t.Fatalf("weight %d: the gradient is %v, the loss differs by %v", i, gradient[i], difference)
		}
	}
}

func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	t.Run("perceptron", rapid.MakeCheck(func(t *rapid.T) {
		random := rand.New(rand.NewPCG(rapid.Uint64().Draw(t, "seed"), 1))
		p := newPerceptron(exampleLoss(), random)
		input, target := draw(random, 5), draw(random, 3)
		if rapid.Bool().Draw(t, "missing") {
			target[1] = math.NaN()
		}
		checkGradient(t, p.network.weights, func(gradient []float64) float64 { return p.gradient(input, target, gradient) })
	}))
}
