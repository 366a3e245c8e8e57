package probing

import (
	"cmp"
	"math"
	"slices"
)

const (
	// leastNoise is the least standard deviation of an epoch's log cost, and
	// usualNoise what is thought of it before anything is known, worth
	// usualEpochs epochs.
	leastNoise  = 0.02
	usualNoise  = 0.04
	usualEpochs = 4
	// likeness is by how much the same ratio differs between runs that are
	// alike; more epochs of one run do not take it away.
	likeness = 0.015
	// firstNoise is by how much warming up differs from one start to the next.
	firstNoise = 0.1
)

// epochVariance is the variance of one epoch's log cost, pooled over all
// observations. The median keeps a few disturbed epochs from raising it.
func epochVariance(observations []Observation) float64 {
	type spread struct{ variance, freedom float64 }
	var spreads []spread
	total := 0.0
	for _, one := range observations {
		if one.Epochs < 2 || one.First {
			continue
		}
		freedom := float64(one.Epochs - 1)
		// The median of a sample variance lies below its mean (Wilson, Hilferty).
		median := math.Pow(1-2/(9*freedom), 3)
		spreads = append(spreads, spread{one.Variance / median, freedom})
		total += freedom
	}
	slices.SortStableFunc(spreads, func(a, b spread) int {
		return cmp.Or(cmp.Compare(a.variance, b.variance), cmp.Compare(a.freedom, b.freedom))
	})
	middle, below := 0.0, 0.0
	for _, one := range spreads {
		middle = one.variance
		if below += one.freedom; below >= total/2 {
			break
		}
	}
	pooled := (usualEpochs*usualNoise*usualNoise + total*middle) / (usualEpochs + total)
	return max(pooled, leastNoise*leastNoise)
}

// weight is the precision of the observation's mean. One whose epochs differ more
// than those of others does not count more than its own spread allows.
func (o Observation) weight(pooled float64) float64 {
	freedom := float64(o.Epochs - 1)
	variance := max(pooled, (pooled+freedom*o.Variance)/(1+freedom))
	if o.First {
		variance += firstNoise * firstNoise
	}
	return 1 / (variance/float64(o.Epochs) + likeness*likeness)
}
