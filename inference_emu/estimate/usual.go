package estimate

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/regression"
)

// Usual is what sums leave over on all devices of an engine alike: that it is slow
// at some operator, say. It is smooth, and vanishes far from what was measured.
type Usual struct {
	// Places are the workloads' coordinates, Pulls how much each adds nearby.
	Places [][]float64 `json:"places,omitempty"`
	Pulls  []float64   `json:"pulls,omitempty"`
}

// near falls from one to zero with the distance of two workloads.
func near(a, b, lengths []float64) float64 {
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
		sum += p.Usual.Pulls[i] * near(other, place, p.Lengths)
	}
	return sum
}

// without takes what is usual off the samples.
func (p *Prior) without(samples []sample) []sample {
	out := append([]sample(nil), samples...)
	for i := range out {
		out[i].log -= p.usual(out[i].place)
	}
	return out
}

// mostPlaces bounds what is remembered of an engine.
const mostPlaces = 200

// learnUsual averages what the sums leave over on several devices, workload by
// workload. What only one device shows is not usual.
func (p *Prior) learnUsual(fits []*posterior) {
	index := map[string]int{}
	var places [][]float64
	var sums, counts []float64
	for _, fit := range fits {
		for _, one := range fit.samples {
			predicted, _ := value(fit.factors, one.terms)
			place := rounded(one.place[:atCores])
			key := fmt.Sprint(place)
			at, known := index[key]
			if !known {
				if len(places) == mostPlaces {
					continue
				}
				at = len(places)
				index[key] = at
				places, sums, counts = append(places, place), append(sums, 0), append(counts, 0)
			}
			sums[at] += math.Max(-0.5, math.Min(0.5, one.log-predicted))
			counts[at]++
		}
	}
	covariance := regression.Square(len(places))
	for i, a := range places {
		sums[i] /= counts[i]
		for j := range i {
			covariance[i][j] = p.Amplitude * p.Amplitude * near(a, places[j], p.Lengths)
		}
		covariance[i][i] = p.Amplitude*p.Amplitude + (p.Amplitude*p.Amplitude+p.Noise*p.Noise)/counts[i]
	}
	pulls := regression.Factorize(covariance).Solve(sums)
	for i := range pulls {
		pulls[i] *= p.Amplitude * p.Amplitude
	}
	p.Usual = Usual{Places: places, Pulls: rounded(pulls)}
}

// rounded keeps three digits behind the point.
func rounded(values []float64) []float64 {
	out := make([]float64, len(values))
	for i, x := range values {
		out[i] = math.Round(1000*x) / 1000
	}
	return out
}
