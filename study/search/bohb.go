package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// The defaults of BOHB (Falkner et al. 2018, section 4.1 and the reference
// implementation).
const (
	goodPercent     = 15 // of the observations make the good density
	modelCandidates = 64 // are drawn from the good density for each proposal
	bandwidthFactor = 3  // widens the good density for these draws
	// maxObservations bounds the kernels of a density, and so the time of a
	// proposal, in studies of many thousand trials.
	maxObservations = 128
	// modelRounds is how often new candidates are drawn when all were forbidden,
	// tried before or close to trials that are out.
	modelRounds = 3
)

// bohb draws from a model of what was good: the configuration among candidates
// with the highest ratio of the density of good configurations to that of bad
// ones. The model belongs to one rung, the highest with enough observations.
type bohb struct {
	randomFraction float64
	// even gives the share that no model chooses: points of a Sobol sequence,
	// which cover the space more evenly than as many uniform draws. It is nil
	// where the space has too many parameters for that.
	even  proposer
	model model
	// Buffers of a proposal.
	points [][]float64
	sums   []float64
}

// model is the pair of densities of a rung, kept until the rung has more data.
type model struct {
	rung, size int // what it was fitted to; size 0: nothing yet
	good, bad  density
	pending    density
}

func newBOHB(settings Settings) (proposer, error) {
	b := &bohb{randomFraction: settings.RandomFraction}
	if sequence, err := newSobol(settings); err == nil {
		b.even = sequence
	}
	return b, nil
}

func (b *bohb) propose(h *history, r *rand.Rand) (proposal, bool) {
	if r.Float64() < b.randomFraction {
		if b.even != nil {
			p, ok := b.even.propose(h, r)
			p.reason += ", as a fixed share of the trials does not ask the model"
			return p, ok
		}
		configuration, ok := drawRandom(h, r)
		return proposal{configuration: configuration, origin: originRandom, reason: "drawn uniformly, as a fixed share of the trials is"}, ok
	}
	at := modelled(h)
	if at < 0 {
		configuration, ok := drawRandom(h, r)
		reason := fmt.Sprintf("drawn uniformly: a model needs %d trials with a result at one rung", leastObservations(h))
		return proposal{configuration: configuration, origin: originRandom, reason: reason}, ok
	}
	b.fit(h, at)
	if configuration, ok := b.best(h, r); ok {
		reason := fmt.Sprintf("drawn from the model of rung %d, which has %d observations", at, b.model.size)
		return proposal{configuration: configuration, origin: originModel, reason: reason}, true
	}
	configuration, ok := drawRandom(h, r)
	return proposal{configuration: configuration, origin: originRandom, reason: "drawn uniformly: all that the model proposes was tried before, is too close to a trial that is out, or is forbidden"}, ok
}

// leastObservations is the paper's N_min + 2, where N_min is d + 1.
func leastObservations(h *history) int { return len(h.cube.Dimensions()) + 3 }

// modelled is the highest rung with enough observations for a model, or -1.
// Failures are observations, but the good density needs d + 1 real values.
func modelled(h *history) int {
	least := leastObservations(h)
	for i := len(h.rungs) - 1; i >= 0; i-- {
		if r := &h.rungs[i]; len(r.entries) >= least && r.usable() >= least-2 {
			return i
		}
	}
	return -1
}

// fit brings the model up to the rung's data and to the trials now pending.
func (b *bohb) fit(h *history, at int) {
	r := &h.rungs[at]
	m := &b.model
	if n := len(r.entries); m.rung != at || m.size != n {
		// Equation 3 of the paper: both densities have at least d + 1
		// observations, and of few they share some.
		least := leastObservations(h) - 2
		good := max(least, n*goodPercent/100)
		bad := max(least, n-good)
		m.good.fit(h.cube.Dimensions(), b.gather(h, r.entries[:min(good, r.usable())]))
		m.bad.fit(h.cube.Dimensions(), b.gather(h, r.entries[n-bad:]))
		m.rung, m.size = at, n
	}
	b.points = b.points[:0]
	for _, number := range h.pending() {
		b.points = append(b.points, h.points[number])
	}
	m.pending.like(&m.bad, b.points)
}

// gather returns the points of the entries; of too many, ones evenly spread
// over the ranking.
func (b *bohb) gather(h *history, entries []entry) [][]float64 {
	b.points = b.points[:0]
	n := min(len(entries), maxObservations)
	for i := range n {
		b.points = append(b.points, h.points[entries[i*len(entries)/n].trial])
	}
	return b.points
}

// candidate is a draw from the good density.
type candidate struct {
	point []float64
	ratio float64
}

// bestFirst sorts candidates by their ratios; of equals the earlier drawn is first.
func bestFirst(list []candidate) {
	slices.SortStableFunc(list, func(x, y candidate) int {
		switch {
		case x.ratio > y.ratio:
			return -1
		case x.ratio < y.ratio:
			return 1
		}
		return 0
	})
}

// best draws candidates and returns the best one that is new.
func (b *bohb) best(h *history, r *rand.Rand) (space.Configuration, bool) {
	dimensions := len(h.cube.Dimensions())
	memory := make([]float64, modelCandidates*dimensions)
	candidates := make([]candidate, 0, modelCandidates)
	for range modelRounds {
		candidates = candidates[:0]
		for i := range modelCandidates {
			point := memory[i*dimensions : (i+1)*dimensions]
			b.model.good.draw(r, bandwidthFactor, point)
			h.cube.Mask(point)
			if !h.cube.Forbids(point) {
				candidates = append(candidates, candidate{point, b.ratio(point)})
			}
		}
		bestFirst(candidates)
		for _, c := range candidates {
			if configuration, ok := fresh(h, c.point); ok {
				return configuration, true
			}
		}
	}
	return nil, false
}

// ratio is the logarithm of l(x) / g(x). Trials without a result yet count as
// bad, so that workers which ask at the same time are not sent to one place.
func (b *bohb) ratio(point []float64) float64 {
	m := &b.model
	bad := m.bad.n + m.pending.n
	b.sums = grow(b.sums, max(bad, m.good.n))
	m.good.kernels(point, b.sums[:m.good.n])
	good := logMean(b.sums[:m.good.n])
	m.bad.kernels(point, b.sums[:m.bad.n])
	m.pending.kernels(point, b.sums[m.bad.n:bad])
	ratio := good - logMean(b.sums[:bad])
	if math.IsNaN(ratio) {
		return math.Inf(-1)
	}
	return ratio
}
