package deflate

import (
	"fmt"
	"math"
)

// mostStages bounds the phases of a fitted distribution: what varies less than
// so many exponential stages do is taken to vary as they do.
const mostStages = 30

// Fit is a phase-type distribution with the mean, in seconds, and the squared
// coefficient of variation (variance / mean²).
//
// What varies less than an exponential time is a mixture of k − 1 and k equal
// stages, what varies more one of two exponential times with balanced means
// (Tijms, Stochastic Models, 1994, section 4.1; both keep the two moments). A
// variation of less than 1/30 is fitted as 1/30.
func Fit(mean, variation float64) (Phases, error) {
	if !(mean > 0) || math.IsInf(mean, 0) || !(variation >= 0) || math.IsInf(variation, 0) {
		return Phases{}, fmt.Errorf("a mean of %g s and a squared coefficient of variation of %g: the first must be positive and finite, the second finite and not negative", mean, variation)
	}
	if variation > 1 {
		first := (1 + math.Sqrt((variation-1)/(variation+1))) / 2
		return Phases{
			Begin: []float64{first, 1 - first}, Next: [][]Step{nil, nil},
			Done: []float64{2 * first / mean, 2 * (1 - first) / mean},
		}, nil
	}
	stages := min(mostStages, int(math.Ceil(1/max(variation, 1.0/mostStages)-1e-9)))
	k, variation := float64(stages), max(variation, 1/float64(stages))
	// With probability fewer there is one stage less.
	fewer := min(1, max(0, (k*variation-math.Sqrt(max(0, k*(1+variation)-k*k*variation)))/(1+variation)))
	rate := (k - fewer) / mean
	p := Phases{Begin: make([]float64, stages), Next: make([][]Step, stages), Done: make([]float64, stages)}
	p.Begin[0] = 1 - fewer
	if stages > 1 {
		p.Begin[1] = fewer
	} else {
		p.Begin[0] = 1
	}
	for i := range stages {
		if i+1 < stages {
			p.Next[i] = []Step{{To: i + 1, Rate: rate}}
		} else {
			p.Done[i] = rate
		}
	}
	return p, nil
}
