package forecast

import (
	"math"
	"math/rand/v2"
	"testing"
)

// loss of one window, from what is computed without a graph.
func (n *Network) loss(series []float64) float64 {
	said, width := n.forward(series[:Lookback]), len(n.settings.Quantiles)
	quantiles, sum := make([]float64, width), 0.0
	for minute := range Horizon {
		n.unfold(said[minute*width:(minute+1)*width], quantiles)
		truth := (series[Lookback+minute] - series[Lookback-1]) / n.scale
		for i, q := range n.settings.Quantiles {
			sum += Pinball(q, truth, quantiles[i])
		}
	}
	return sum / float64(Horizon*width)
}

// TestGradientsAreThoseOfTheLoss compares the derivative of weights of every
// part with differences of the loss.
func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	settings, err := Settings{Hidden: 4, Quantiles: []float64{0.1, 0.3, 0.5, 0.7, 0.9}, Seed: 3}.complete()
	if err != nil {
		t.Fatal(err)
	}
	n := newNetwork(settings)
	random := rand.New(rand.NewPCG(1, 2))
	const batch = 2
	l, err := n.lesson(batch)
	if err != nil {
		t.Fatal(err)
	}
	defer l.graph.Close()
	var windows [][]float64
	for sample := range batch {
		series := make([]float64, Lookback+Horizon)
		for i := range series {
			series[i] = 50 + 10*math.Sin(float64(i)/7) + 3*random.NormFloat64()
		}
		if sample == 0 {
			n.measure(series)
		}
		l.fill(sample, series)
		windows = append(windows, series)
	}
	loss := func() float64 {
		sum := 0.0
		for _, series := range windows {
			sum += n.loss(series) / batch
		}
		return sum
	}
	if byGraph, err := l.graph.Learn(); err != nil || math.Abs(byGraph-loss()) > 1e-9 {
		t.Errorf("the loss is %v by the graph and %v without it, %v", byGraph, loss(), err)
	}
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
}
