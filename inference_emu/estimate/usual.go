package estimate

import "math"

// Usual is what sums leave over on all devices of an engine alike: that it is slow
// at some operator, say. It is smooth, and vanishes far from what was measured.
type Usual struct {
	// Places are the workloads' coordinates, Pulls how much each adds nearby.
	Places [][]float64 `json:"places,omitempty"`
	Pulls  []float64   `json:"pulls,omitempty"`
}

// Near falls from one to zero with the distance of two workloads.
func Near(a, b, lengths []float64) float64 {
	distance := 0.0
	for i, x := range a {
		d := (x - b[i]) / lengths[i]
		distance += d * d
	}
	return math.Exp(-distance / 2)
}

// usual is what an engine leaves over of a workload.
func (p *Prior) usual(place []float64) float64 {
	sum := 0.0
	for i, other := range p.Usual.Places {
		sum += p.Usual.Pulls[i] * Near(other, place, p.Lengths)
	}
	return sum
}

// Without takes what is usual off the samples.
func (p *Prior) Without(samples []Sample) []Sample {
	out := append([]Sample(nil), samples...)
	for i := range out {
		out[i].Log -= p.usual(out[i].Place)
	}
	return out
}
