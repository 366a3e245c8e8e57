package colocated

import (
	"math"
	"math/rand/v2"
	"testing"
)

// loss of one view, from what is computed without a graph.
func (n *Network) loss(v view) float64 {
	n.decoder.Begin(n.encode(v.own, v.other))
	sum := 0.0
	for i, x := range v.inputs {
		speed, busy := n.decode(n.decoder, x)
		sum += (speed-v.speed[i])*(speed-v.speed[i]) + weightOfBusy*(busy-v.busy[i])*(busy-v.busy[i])
	}
	return sum / float64(len(v.inputs))
}

// TestGradientsAreThoseOfTheLoss compares the derivative of weights of every
// part with differences of the loss.
func TestGradientsAreThoseOfTheLoss(t *testing.T) {
	random := rand.New(rand.NewPCG(1, 2))
	profile := func(seconds float64) Profile {
		p := Profile{Seconds: seconds}
		for range 7 {
			p.Points = append(p.Points, Point{Utilization: random.Float64(), MemoryBytes: 2e9 * random.Float64(), StepsASecond: 5})
		}
		return p
	}
	pair := Pair{Alone: [2]Profile{profile(20), profile(30)}}
	for k := range pair.Together {
		for i := range 10 {
			pair.Together[k] = append(pair.Together[k], Reading{Seconds: 4 * float64(i+1), Completion: float64(i+1) / 10, Utilization: random.Float64()})
		}
	}
	n, v := newNetwork(4, random), viewOf(pair, 0)
	if len(v.inputs) < 20 {
		t.Fatalf("%d periods", len(v.inputs))
	}
	for i := range n.last.Value { // it begins as zeros
		n.last.Value[i] = random.NormFloat64() / 2
	}
	shorter := v
	shorter.inputs = v.inputs[:7]
	views := []view{v, shorter}
	l, err := n.lesson(3, views) // one place is left over
	if err != nil {
		t.Fatal(err)
	}
	defer l.graph.Close()
	l.fill(views)
	loss := func() float64 { return (n.loss(v) + n.loss(shorter)) / 2 }
	if byGraph, err := l.graph.Learn(); err != nil || math.Abs(byGraph-loss()) > 1e-9 {
		t.Errorf("the loss is %v by the graph and %v without it, %v", byGraph, loss(), err)
	}
	gradients := [][]float64{}
	for _, part := range n.parts() {
		gradients = append(gradients, append([]float64(nil), part.Gradient...))
	}
	for p, part := range n.parts() {
		for range 40 {
			i := random.IntN(len(part.Value))
			value := part.Value[i]
			const small = 1e-5
			part.Value[i] = value + small
			above := loss()
			part.Value[i] = value - small
			below := loss()
			part.Value[i] = value
			if numeric := (above - below) / (2 * small); math.Abs(numeric-gradients[p][i]) > 1e-7+1e-4*math.Abs(numeric) {
				t.Errorf("part %d, weight %d: %g, by differences %g", p, i, gradients[p][i], numeric)
			}
		}
	}
}
