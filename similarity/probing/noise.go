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
	// trusted is the largest deviation of other runs whose epochs need not be
	// measured again in this one.
	trusted = 0.1
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
// than those of others does not count more than its own spread allows. Others is
// how many runs with a deviation were observed at the same point.
func (o Observation) weight(pooled float64, others int) float64 {
	freedom := float64(o.Epochs - 1)
	variance := max(pooled, (pooled+freedom*o.Variance)/(1+freedom))
	if o.First {
		variance += firstNoise * firstNoise
	}
	return 1 / (variance/float64(o.Epochs) + likeness*likeness + o.Deviation*o.Deviation*float64(others))
}

// Disagreement is by how much the ratios of costs differ between the runs beyond
// the noise of their epochs: the standard deviation of a logarithm, after a level
// of each run and an effect of each point are taken out. It is 0 where too little
// was measured to tell. First epochs say nothing of it.
func Disagreement(observations []Observation) float64 {
	cells := slices.DeleteFunc(ordered(observations), func(o Observation) bool { return o.First })
	pooled := epochVariance(cells)
	levels, effects := map[string]*mean{}, map[place]*mean{}
	type cell struct {
		level, effect *mean
		cost          float64
	}
	list := make([]cell, len(cells))
	noise := 0.0
	for i, one := range cells {
		at := one.point().place
		if levels[one.Run] == nil {
			levels[one.Run] = &mean{}
		}
		if effects[at] == nil {
			effects[at] = &mean{}
		}
		list[i] = cell{levels[one.Run], effects[at], one.LogCost}
		noise += pooled / float64(one.Epochs) / float64(len(cells))
	}
	freedom := len(list) - len(levels) - len(effects) + 1
	if freedom < 1 {
		return 0
	}
	for range 30 { // alternating means converge to least squares
		for _, level := range levels {
			level.count = 0
		}
		for _, one := range list {
			one.level.add(one.cost - one.effect.value)
		}
		for _, effect := range effects {
			effect.count = 0
		}
		for _, one := range list {
			one.effect.add(one.cost - one.level.value)
		}
	}
	squares := 0.0
	for _, one := range list {
		left := one.cost - one.level.value - one.effect.value
		squares += left * left
	}
	return math.Sqrt(max(0, squares/float64(freedom)-noise))
}

// mean is a running one: its first value replaces what was before.
type mean struct{ value, count float64 }

func (m *mean) add(value float64) {
	m.count++
	m.value += (value - m.value) / m.count
}
