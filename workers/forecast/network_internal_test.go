package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
)

// TestGradientsAreThoseOfTheLoss compares the derivative of weights of every
// part with differences of the loss.
func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	for _, encoder := range []string{GRU, BiLSTM, Convolutional} {
		for _, point := range []bool{false, true} {
			name := encoder
			if point {
				name += ", point"
			}
			t.Run(name, func(t *testing.T) {
				settings, err := Settings{Encoder: encoder, Hidden: 4, Point: point, Quantiles: []float64{0.1, 0.3, 0.5, 0.7, 0.9}, Seed: 3}.complete()
				if err != nil {
					t.Fatal(err)
				}
				n, err := newNetwork(settings)
				if err != nil {
					t.Fatal(err)
				}
				random := rand.New(rand.NewPCG(1, 2))
				series := make([]float64, Lookback+Horizon)
				for i := range series {
					series[i] = 50 + 10*math.Sin(float64(i)/7) + 3*random.NormFloat64()
				}
				n.measure(series)
				blame := make([]float64, n.last.Rows)
				loss := func() float64 {
					return n.loss(n.forward(series[:Lookback]), series[Lookback-1:], blame, 1)
				}
				loss()
				n.backward(blame)
				checked := 0
				for p, part := range n.parts() {
					for range 40 {
						i := random.IntN(len(part.Value))
						analytic, value := part.Gradient[i], part.Value[i]
						const small = 1e-5
						part.Value[i] = value + small
						above := loss()
						part.Value[i] = value - small
						below := loss()
						part.Value[i] = value
						numeric := (above - below) / (2 * small)
						// Where the loss has a corner between the two, they differ.
						if math.Abs(analytic-numeric) > 1e-4*max(1e-2, math.Abs(analytic), math.Abs(numeric)) {
							t.Errorf("part %d, weight %d: %g, by differences %g", p, i, analytic, numeric)
						}
						checked++
					}
				}
				if checked < 100 {
					t.Errorf("%d weights were checked", checked)
				}
			})
		}
	}
}
