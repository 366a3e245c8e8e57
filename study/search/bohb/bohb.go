// Package bohb is BOHB (Falkner et al. 2018): draws from where the density of good
// configurations is high against that of bad ones.
package bohb

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/search/kde"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/search/sobol"
	"github.com/tandem-tune/tandem/study/space"
)

// The defaults of BOHB (Falkner et al. 2018, section 4.1 and the reference
// implementation).
const (
	GoodPercent     = 15 // of the observations make the good density
	modelCandidates = 64 // are drawn from the good density for each proposal
	bandwidthFactor = 3  // widens the good density for these draws
)

// BOHB draws from a model of what was good: the configuration among candidates
// with the highest ratio of the density of good configurations to that of bad
// ones. The model belongs to one rung, the highest with enough observations.
type BOHB struct {
	randomFraction float64
	// even gives the share that no model chooses: points of a Sobol sequence,
	// which cover the space more evenly than as many uniform draws. It is nil
	// where the space has too many parameters for that.
	even       propose.Proposer
	model      Model
	rung, size int         // what the model was fitted to; size 0: nothing yet
	failed     int         // what had no value at lower rungs then
	below      bool        // the bad density has that too
	points     [][]float64 // a buffer
}

// Model is a pair of densities, with that of pending trials.
type Model struct {
	Good, Bad, Pending kde.Density
	sums               []float64 // a buffer
}

// New returns the proposer of a space; randomFraction of the configurations are
// chosen by no model. With below, the model learns from what failed at lower rungs.
func New(s space.Space, seed uint64, randomFraction float64, below bool) *BOHB {
	b := &BOHB{randomFraction: randomFraction, below: below}
	if sequence, err := sobol.New(s, seed); err == nil {
		b.even = sequence
	}
	return b
}

func (b *BOHB) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	if r.Float64() < b.randomFraction {
		if b.even != nil {
			p, ok := b.even.Propose(h, r)
			p.Reason += ", as a fixed share of the trials does not ask the model"
			return p, ok
		}
		return propose.Uniform(h, r, "drawn uniformly, as a fixed share of the trials is")
	}
	at := modelled(h)
	if at < 0 {
		reason := fmt.Sprintf("drawn uniformly: a model needs %d trials with a result at one rung", LeastObservations(h))
		return propose.Uniform(h, r, reason)
	}
	b.fit(h, at)
	if configuration, ok := b.model.Best(h, r); ok {
		reason := fmt.Sprintf("drawn from the model of rung %d, which has %d observations", at, b.size)
		return ladder.Proposal{Configuration: configuration, Origin: propose.OriginModel, Reason: reason}, true
	}
	return propose.Uniform(h, r, "drawn uniformly: all that the model proposes was tried before, is too close to a trial that is out, or is forbidden")
}

// LeastObservations is the paper's N_min + 2, where N_min is d + 1.
func LeastObservations(h *ladder.History) int { return len(h.Cube.Dimensions()) + 3 }

// modelled is the highest rung with enough observations for a model, or -1.
// Failures are observations, but the good density needs d + 1 real values.
func modelled(h *ladder.History) int {
	least := LeastObservations(h)
	for i := len(h.Rungs) - 1; i >= 0; i-- {
		if r := &h.Rungs[i]; len(r.Entries) >= least && r.Usable() >= least-2 {
			return i
		}
	}
	return -1
}

// fit brings the model up to the rung's data and to the trials now pending.
func (b *BOHB) fit(h *ladder.History, at int) {
	r := &h.Rungs[at]
	m := &b.model
	failed := 0
	for i := range h.Rungs[:at] {
		failed += len(h.Rungs[i].Entries) - h.Rungs[i].Usable()
	}
	if n := len(r.Entries); b.rung != at || b.size != n || b.below && b.failed != failed {
		// Equation 3 of the paper: both densities have at least d + 1
		// observations, and of few they share some.
		least := LeastObservations(h) - 2
		good := max(least, n*GoodPercent/100)
		bad := max(least, n-good)
		m.Good.Fit(h.Cube.Dimensions(), b.gather(h, r.Entries[:min(good, r.Usable())]))
		worse := ladder.SpreadOut(r.Entries[n-bad:], kde.MaxObservations)
		if b.below {
			worse = append(worse, h.Bad(at, false, kde.MaxObservations)...)
		}
		m.Bad.Fit(h.Cube.Dimensions(), b.gather(h, worse))
		b.rung, b.size, b.failed = at, n, failed
	}
	b.points = b.points[:0]
	for _, number := range h.Pending() {
		b.points = append(b.points, h.Points[number])
	}
	m.Pending.Like(&m.Bad, b.points)
}

// gather returns the points of the entries; of too many, ones evenly spread
// over the ranking.
func (b *BOHB) gather(h *ladder.History, entries []ladder.Entry) [][]float64 {
	b.points = b.points[:0]
	n := min(len(entries), kde.MaxObservations)
	for i := range n {
		b.points = append(b.points, h.Points[entries[i*len(entries)/n].Trial])
	}
	return b.points
}

// Best draws candidates and returns the best one that is new.
func (m *Model) Best(h *ladder.History, r *rand.Rand) (space.Configuration, bool) {
	dimensions := len(h.Cube.Dimensions())
	memory := make([]float64, modelCandidates*dimensions)
	candidates := make([]kde.Candidate, 0, modelCandidates)
	for range kde.Rounds {
		candidates = candidates[:0]
		for i := range modelCandidates {
			point := memory[i*dimensions : (i+1)*dimensions]
			m.Good.Draw(r, bandwidthFactor, point)
			h.Cube.Mask(point)
			if !h.Cube.Forbids(point) {
				candidates = append(candidates, kde.Candidate{Point: point, Ratio: m.Ratio(point)})
			}
		}
		kde.SortCandidates(candidates)
		for _, c := range candidates {
			if configuration, ok := propose.Fresh(h, c.Point); ok {
				return configuration, true
			}
		}
	}
	return nil, false
}

// Ratio is the logarithm of l(x) / g(x). Trials without a result yet count as
// bad, so that workers which ask at the same time are not sent to one place.
func (m *Model) Ratio(point []float64) float64 {
	bad := m.Bad.N + m.Pending.N
	m.sums = kde.Grow(m.sums, max(bad, m.Good.N))
	m.Good.Kernels(point, m.sums[:m.Good.N])
	good := kde.LogMean(m.sums[:m.Good.N])
	m.Bad.Kernels(point, m.sums[:m.Bad.N])
	m.Pending.Kernels(point, m.sums[m.Bad.N:bad])
	ratio := good - kde.LogMean(m.sums[:bad])
	if math.IsNaN(ratio) {
		return math.Inf(-1)
	}
	return ratio
}
