// Package gp is Bayesian optimization with a Gaussian process over the whole ladder.
package gp

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/search/sobol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/surrogate"
)

const (
	// gpLeast is how many outcomes the lowest modelled rung has at least; with
	// more parameters it is one more than these, up to gpMostLeast.
	gpLeast, gpMostLeast = 6, 16
	// gpAbove is how many values make a rung above it part of the model.
	gpAbove = 3
	// gpUniformShare of the trials are drawn uniformly: a model that is wrong
	// everywhere notices it by nothing else.
	gpUniformShare = 0.2
	// The largest numbers of observations in the model: of the lowest rung, of
	// each one above, and when the kernel's parameters are fitted.
	gpObservations, gpObservationsAbove, gpFitted = 200, 80, 80
	// gpBelieved bounds the trials without a result that the model believes in.
	gpBelieved = 64
)

// GP is Bayesian optimization with a Gaussian process over the whole ladder: of
// many candidates it proposes the one whose expected improvement at the highest
// modelled rung is largest. Trials without a result are believed to come out
// as the model expects, which leaves nothing to gain near them (the kriging
// believer, Ginsbourger, Le Riche and Carraro 2010).
type GP struct {
	start propose.Proposer
	// What follows from the history; see fit.
	model      *surrogate.Ladder
	sizes      []int // of the rungs, when the model was conditioned
	measured   int   // observations in the model's rungs
	top        int   // the model's highest rung
	incumbents []incumbent
	parameters surrogate.Parameters
	fitted     fittedTo
}

// fittedTo tells which outcomes the kernel's parameters were fitted to: those
// that the first trials have at a rung.
type fittedTo struct{ rung, trials, outcomes int }

// incumbent is a measured point with the model's mean there.
type incumbent struct {
	point []float64
	mean  float64
}

// New returns the proposer of a space. It begins with a Sobol sequence that the seed
// shifts, or uniform draws where the space has more dimensions than that.
func New(s space.Space, seed uint64) *GP {
	if start, err := sobol.New(s, seed); err == nil {
		return &GP{start: start}
	}
	return &GP{start: propose.Random{}}
}

func (g *GP) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	lowest := g.lowest(h)
	if lowest < 0 {
		p, ok := g.start.Propose(h, r)
		p.Reason += fmt.Sprintf("; a model needs %d trials with an outcome at one rung", gpOutcomes(h))
		return p, ok
	}
	if r.Float64() < gpUniformShare {
		return propose.Uniform(h, r, "drawn uniformly, as a fixed share of the trials is")
	}
	g.fit(h, lowest)
	if configuration, ok := g.best(h, r); ok {
		reason := fmt.Sprintf("the largest expected improvement at rung %d in a Gaussian process of %d observations", g.top, g.measured)
		return ladder.Proposal{Configuration: configuration, Origin: propose.OriginModel, Reason: reason}, true
	}
	return propose.Uniform(h, r, "drawn uniformly: all that the model proposes was tried before, is too close to a trial that is out, or is forbidden")
}

// gpOutcomes is how many outcomes a rung needs to be modelled.
func gpOutcomes(h *ladder.History) int {
	return min(max(len(h.Cube.Dimensions())+1, gpLeast), gpMostLeast)
}

// lowest is the lowest rung with enough outcomes, or -1. The trials of those
// below it started there and are too few to say anything.
func (g *GP) lowest(h *ladder.History) int {
	least := gpOutcomes(h)
	for i := range h.Rungs {
		if r := &h.Rungs[i]; len(r.Entries) >= least && r.Usable() >= gpAbove {
			return i
		}
	}
	return -1
}

// fit brings the model up to the history. It is a pure function of the outcomes,
// which are only ever added, so that equal sizes mean equal outcomes, and of the
// trials to which the kernel is fitted.
func (g *GP) fit(h *ladder.History, lowest int) {
	sizes := make([]int, len(h.Rungs))
	for i := range h.Rungs {
		sizes[i] = len(h.Rungs[i].Entries)
	}
	trials := fittedTrials(h)
	if g.model != nil && slices.Equal(sizes, g.sizes) && g.fitted.rung == lowest && g.fitted.trials == trials {
		return
	}
	g.fitParameters(h, lowest, trials)
	most, levels := gpObservations, []surrogate.Level(nil)
	g.measured = 0
	for i := lowest; i < len(h.Rungs); i++ {
		r := &h.Rungs[i]
		if i > lowest && r.Usable() < gpAbove {
			continue
		}
		level := observed(h, chosen(r.Entries, most), standardOf(r.Entries))
		levels = append(levels, level)
		g.measured += len(level.Points)
		g.top, most = i, gpObservationsAbove
	}
	g.model = surrogate.NewLadder(h.Cube.Dimensions(), g.parameters, levels)
	g.sizes = sizes
	g.incumbents = g.incumbents[:0]
	for _, level := range levels {
		for _, point := range level.Points {
			mean, _ := g.model.Predict(point)
			g.incumbents = append(g.incumbents, incumbent{point, mean})
		}
	}
	slices.SortStableFunc(g.incumbents, func(a, b incumbent) int { return cmp.Compare(b.mean, a.mean) })
}

// fittedTrials is to how many of the first trials the kernel is fitted. That goes
// up in steps of an eighth, so that in a large study the fit is seldom made anew.
func fittedTrials(h *ladder.History) int {
	trials, step := len(h.Trials), 1
	for step*16 <= trials {
		step *= 2
	}
	return trials - trials%step
}

// fitParameters fits the kernel to the outcomes of the first trials at the rung.
func (g *GP) fitParameters(h *ladder.History, rung, trials int) {
	var entries []ladder.Entry
	for _, e := range h.Rungs[rung].Entries {
		if e.Trial < trials {
			entries = append(entries, e)
		}
	}
	if now := (fittedTo{rung, trials, len(entries)}); g.fitted != now || g.model == nil {
		g.fitted = now
		level := observed(h, ladder.SpreadOut(entries, gpFitted), standardOf(entries))
		g.parameters = surrogate.Fit(h.Cube.Dimensions(), level.Points, level.Values)
	}
}
