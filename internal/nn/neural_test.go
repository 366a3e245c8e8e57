package nn_test

import (
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/internal/nn"
)

// TestGradientsOfAChainOfGRUs holds the gradients of two layers, the second of
// which begins with the state of the first, against differences of the loss.
func TestGradientsOfAChainOfGRUs(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	encoder, decoder := nn.NewGRU(3, 4, random), nn.NewGRU(2, 4, random)
	last := nn.NewTensor(2, 5, random)
	sequence := func(steps, width int) [][]float64 {
		list := make([][]float64, steps)
		for i := range list {
			for range width {
				list[i] = append(list[i], random.NormFloat64())
			}
		}
		return list
	}
	in, out, wanted := sequence(6, 3), sequence(5, 2), sequence(5, 2)
	// The loss is half of the squared error of every second step's output.
	loss := func(learn bool) float64 {
		encoder.Begin(nil)
		var context []float64
		for _, x := range in {
			context = encoder.Next(x)
		}
		decoder.Begin(context)
		total, blame := 0.0, make([][]float64, len(out))
		for i, x := range out {
			state := append(append([]float64(nil), decoder.Next(x)...), 1)
			if i%2 == 1 {
				continue
			}
			said := make([]float64, 2)
			last.Apply(state, said)
			for k := range said {
				said[k] -= wanted[i][k]
				total += said[k] * said[k] / 2
			}
			if learn {
				ofState := make([]float64, 5)
				last.Learn(state, said, ofState)
				blame[i] = ofState[:4]
			}
		}
		if learn {
			ofEncoder := make([][]float64, len(in))
			ofEncoder[len(in)-1] = decoder.Backward(blame)
			encoder.Backward(ofEncoder)
		}
		return total
	}
	loss(true)
	for name, parts := range map[string][]*nn.Tensor{"encoder": encoder.Parts(), "decoder": decoder.Parts(), "last": {last}} {
		for p, part := range parts {
			for i, value := range part.Value {
				const small = 1e-5
				part.Value[i] = value + small
				above := loss(false)
				part.Value[i] = value - small
				below := loss(false)
				part.Value[i] = value
				if numeric := (above - below) / (2 * small); math.Abs(numeric-part.Gradient[i]) > 1e-6 {
					t.Errorf("%s, part %d, weight %d: %g, by differences %g", name, p, i, part.Gradient[i], numeric)
				}
			}
		}
	}
}

func TestAdamFindsTheBottom(t *testing.T) {
	weights, optimizer := nn.NewTensor(1, 3, nil), nn.Adam{}
	bottom := []float64{2, -1, 0.5}
	for step := range 2000 {
		optimizer.Rate = 0.05 / math.Sqrt(1+float64(step)/50)
		for i, x := range weights.Value {
			weights.Gradient[i] = float64(1+i) * (x - bottom[i])
		}
		optimizer.Step([]*nn.Tensor{weights})
	}
	for i, x := range weights.Value {
		if math.Abs(x-bottom[i]) > 1e-3 {
			t.Errorf("weight %d is %g, the bottom is at %g", i, x, bottom[i])
		}
		if weights.Gradient[i] != 0 {
			t.Error("a step leaves its gradient behind")
		}
	}
}

func TestSoftplusHasTheSlopeOfSigmoid(t *testing.T) {
	for _, x := range []float64{-40, -2, 0, 1, 29.9, 31, 700} {
		const small = 1e-4
		slope := (nn.Softplus(x+small) - nn.Softplus(x-small)) / (2 * small)
		if math.Abs(slope-nn.Sigmoid(x)) > 1e-6 {
			t.Errorf("at %g: %g, want %g", x, slope, nn.Sigmoid(x))
		}
	}
}
