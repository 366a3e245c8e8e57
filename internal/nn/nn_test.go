package nn_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/internal/nn"
)

// chain is two layers, the second of which begins with the state of the first, and
// a last one.
type chain struct {
	encoder, decoder *nn.GRU
	last             *nn.Tensor
}

// loss is half of the squared error of every second step's output, without a graph.
func (c chain) loss(in, out, wanted [][]float64) float64 {
	c.encoder.Begin(nil)
	var context []float64
	for _, x := range in {
		context = c.encoder.Next(x)
	}
	c.decoder.Begin(context)
	total := 0.0
	for i, x := range out {
		said := make([]float64, 2)
		c.last.Apply(append(append([]float64(nil), c.decoder.Next(x)...), 1), said)
		for k := range said {
			if i%2 == 0 {
				total += (said[k] - wanted[i][k]) * (said[k] - wanted[i][k]) / 2
			}
		}
	}
	return total
}

// graph is that of the mean loss over the batch.
func (c chain) graph(t *testing.T, batch, in, out int) (g *nn.Graph, read, decoded, wanted [][]float64) {
	g = nn.NewGraph(batch)
	steps := func(n, width int) (nodes []*nn.Node, values [][]float64) {
		for range n {
			node, one := g.Input(width)
			nodes, values = append(nodes, node), append(values, one)
		}
		return nodes, values
	}
	inputs, read := steps(in, 3)
	more, decoded := steps(out, 2)
	targets, wanted := steps(out, 2)
	states := g.GRU(c.encoder, inputs, nil)
	last, loss := g.Dense(c.last, 1, 4), (*nn.Node)(nil)
	for i, state := range g.GRU(c.decoder, more, states[in-1]) {
		off := g.Subtract(g.Apply(last, state), targets[i])
		part := g.Scale(off, off)
		switch {
		case i == 0:
			loss = part
		case i%2 == 0:
			loss = g.Add(loss, part)
		}
	}
	if err := g.Compile(g.Mean(loss)); err != nil { // a mean over both outputs: half of their sum
		t.Fatal(err)
	}
	return g, read, decoded, wanted
}

// TestGradientsOfAChainOfGRUs holds Gorgonia's gradients of two layers against
// differences of the loss that is computed without it. Two learn at once, as no two
// graphs share anything.
func TestGradientsOfAChainOfGRUs(t *testing.T) {
	for seed := range uint64(2) {
		t.Run(fmt.Sprint("seed ", seed), func(t *testing.T) {
			t.Parallel()
			checkGradients(t, rand.New(rand.NewPCG(seed, 2)))
		})
	}
}

func checkGradients(t *testing.T, random *rand.Rand) {
	const batch = 3
	c := chain{nn.NewGRU(3, 4, random), nn.NewGRU(2, 4, random), nn.NewTensor(2, 5, random)}
	g, read, decoded, wanted := c.graph(t, batch, 6, 5)
	defer g.Close()
	for _, all := range [][][]float64{read, decoded, wanted} {
		for _, values := range all {
			for i := range values {
				values[i] = random.NormFloat64()
			}
		}
	}
	sample := func(all [][]float64, at int) (rows [][]float64) {
		for _, values := range all {
			width := len(values) / batch
			rows = append(rows, values[at*width:(at+1)*width])
		}
		return rows
	}
	loss := func() (mean float64) {
		for at := range batch {
			mean += c.loss(sample(read, at), sample(decoded, at), sample(wanted, at)) / batch
		}
		return mean
	}
	for range 2 { // gradients add up
		if got, err := g.Learn(); err != nil || math.Abs(got-loss()) > 1e-12 {
			t.Fatalf("the loss is %v by the graph and %v without it, %v", got, loss(), err)
		}
	}
	for name, parts := range map[string][]*nn.Tensor{"encoder": c.encoder.Parts(), "decoder": c.decoder.Parts(), "last": {c.last}} {
		for p, part := range parts {
			for i, value := range part.Value {
				const small = 1e-5
				part.Value[i] = value + small
				above := loss()
				part.Value[i] = value - small
				below := loss()
				part.Value[i] = value
				if numeric := (above - below) / (2 * small); math.Abs(2*numeric-part.Gradient[i]) > 1e-6 {
					t.Errorf("%s, part %d, weight %d: %g, by differences %g", name, p, i, part.Gradient[i], 2*numeric)
				}
			}
		}
	}
}

func TestAGraphReportsShapesThatDoNotFit(t *testing.T) {
	g := nn.NewGraph(2)
	x, _ := g.Input(3)
	if err := g.Compile(g.Mean(g.Tanh(g.Apply(g.Dense(nn.NewTensor(2, 5, nil), 1, 4), x)))); err == nil {
		t.Error("three inputs went into a layer of four")
	}
}

func TestAdamFindsTheBottom(t *testing.T) {
	weights, optimizer := nn.NewTensor(1, 3, nil), nn.Adam{Longest: nn.LongestStep}
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

// The first step goes by the rate, whatever the length of the gradient; where it is
// 0, the weight decays alone.
func TestTheFirstStepOfAdam(t *testing.T) {
	values := []float64{2, 2, 4}
	weights, optimizer := nn.Vector(values), nn.Adam{Rate: 0.1, Decay: 0.01}
	copy(weights.Gradient, []float64{5e4, -3, 0})
	optimizer.Step([]*nn.Tensor{weights})
	for i, want := range []float64{2 - 0.1 - 0.002, 2 + 0.1 - 0.002, 4 - 0.004} {
		if math.Abs(values[i]-want) > 1e-8 {
			t.Errorf("weight %d is %g, not %g", i, values[i], want)
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
