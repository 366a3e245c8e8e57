// Package probing answers: which system configuration has a workload's cheapest
// epochs, how sure is that, and what is worth measuring next?
//
// The grid search of Rocha (section 6.3.6) runs each configuration for one epoch
// and takes the lowest time. Here one epoch in each of a few configurations is
// enough: a Gaussian process over (configuration, neighbours) says what they
// teach of the others. The logarithm of an epoch's cost is
//
//	level of the run + effect of each knob's value + effect of the configuration
//	+ effect of the neighbours + effect of both + effect of warming up + noise
//
// where the run's level has a flat prior and is integrated out, so that only
// ratios within a run count and runs of different length can be pooled. The
// effects have Gaussian priors with mean 0: co-location is free until measured.
// Warming up is of the first epoch after a start, and much the same for all
// configurations: short runs, which have little else, teach through it too.
//
// [Model.Choose] eliminates configurations until one is left. The package is
// pure and deterministic: the order of the observations makes no difference.
package probing

import (
	"cmp"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

// Observation is what one run measured under one configuration beside so many
// neighbours.
type Observation struct {
	// Run names the run: costs are compared only within one.
	Run           string
	Configuration system.Configuration
	// Neighbours is how many other trials the machine ran.
	Neighbours int
	// First says that these are first epochs after a start, which warm up.
	First bool
	// LogCost is the mean, over the epochs, of the natural logarithm of the cost.
	LogCost float64
	Epochs  int
	// Variance is the sample variance of those logarithms; 0 of one epoch.
	Variance float64
	// Deviation is by how much the ratios of costs in this run may differ from
	// those of the run that is decided on: the standard deviation of a logarithm,
	// 0 of that run itself. It is one deviation for all other runs together, so
	// that many of them are no surer than it allows.
	Deviation float64
}

// Candidate is a configuration that may run the next epoch.
type Candidate struct {
	Configuration system.Configuration
	// Neighbours is how many other trials would run beside it.
	Neighbours int
	// LogWeight is added to the logarithm of its cost: the logarithm of the share
	// of the machine it takes, for instance.
	LogWeight float64
}

// usable reports whether the observation says anything.
func (o Observation) usable() bool {
	finite := func(v float64) bool { return !math.IsNaN(v) && !math.IsInf(v, 0) }
	return o.Epochs > 0 && finite(o.LogCost) && finite(o.Variance) && o.Variance >= 0
}

// ordered returns the usable observations in an order that depends on nothing
// but themselves.
func ordered(observations []Observation) []Observation {
	type keyed struct {
		Observation
		key string
	}
	var list []keyed
	for _, one := range observations {
		if one.usable() {
			list = append(list, keyed{one, one.Configuration.Key()})
		}
	}
	slices.SortFunc(list, func(a, b keyed) int {
		return cmp.Or(cmp.Compare(a.Run, b.Run), cmp.Compare(a.key, b.key), cmp.Compare(a.Neighbours, b.Neighbours),
			cmp.Compare(whole(a.First), whole(b.First)), cmp.Compare(a.LogCost, b.LogCost), cmp.Compare(a.Epochs, b.Epochs), cmp.Compare(a.Variance, b.Variance))
	})
	sorted := make([]Observation, len(list))
	for i, one := range list {
		sorted[i] = one.Observation
	}
	return sorted
}

func whole(condition bool) int {
	if condition {
		return 1
	}
	return 0
}

// point is where the cost is a number: a configuration beside so many others,
// in a first epoch or a later one.
type point struct {
	configuration system.Configuration
	place
}

// place is what tells points apart.
type place struct {
	key        string
	neighbours int
	first      bool
}

func pointOf(configuration system.Configuration, neighbours int) point {
	return point{configuration, place{key: configuration.Key(), neighbours: max(0, neighbours)}}
}

// point is where it was observed.
func (o Observation) point() point {
	at := pointOf(o.Configuration, o.Neighbours)
	at.first = o.First
	return at
}

func (p point) same(other point) bool { return p.place == other.place }
