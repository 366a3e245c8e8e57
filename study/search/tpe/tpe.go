// Package tpe is the multivariate tree-structured Parzen estimator (Bergstra et al. 2011),
// with groups of parameters that exist under the same conditions.
package tpe

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/search/kde"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
)

// The constants of the multivariate tree-structured Parzen estimator, chosen
// after the components Watanabe (2023) compares and Optuna's defaults.
const (
	startup        = 10   // trials with an outcome at a rung make a model
	goodShare      = 0.15 // of them are good ones
	candidateCount = 24   // are drawn from the good density for each proposal
	// widestBandwidth is the standard deviation of a kernel when there is one
	// observation, as a share of the range. It falls with n^(-1/(4+d)).
	widestBandwidth = 0.2
	// leastBandwidth is what bandwidths are clipped to, together with the
	// square of 1/(n+2) where that is more ("magic clipping").
	leastBandwidth = 0.03
	// changeChance is the chance that a kernel of a choice gives another value.
	changeChance = 0.2
)

// TPE is the multivariate tree-structured Parzen estimator (Bergstra et al.
// 2011; Falkner et al. 2018 and Optuna made it multivariate). Parameters that
// exist under the same conditions are a group and share a density; a group is
// drawn when what stands before it has made it exist, and learns from the
// trials that have it.
type TPE struct {
	groups     []*group
	rung, size int  // what the groups were fitted to; size 0: nothing yet
	outcomes   int  // at the rungs up to that one then
	below      bool // the bad densities have what was bad at lower rungs too
	pending    []int
	candidates []kde.Candidate
	memory     []float64
}

// New returns the proposer of a space. With below, the model learns from what was
// bad at lower rungs.
func New(s space.Space, below bool) *TPE { return &TPE{groups: newGroups(s), below: below} }

func (t *TPE) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	at := t.modelled(h)
	if at < 0 {
		reason := fmt.Sprintf("drawn uniformly: a model needs %d trials with an outcome at one rung", startup)
		return propose.Uniform(h, r, reason)
	}
	t.fit(h, at)
	for range kde.Rounds {
		if point, ok := t.draw(h, r); ok {
			reason := fmt.Sprintf("drawn from the model of rung %d, which has %d observations", at, t.size)
			return ladder.Proposal{Configuration: h.Cube.Decode(point), Origin: propose.OriginModel, Reason: reason}, true
		}
	}
	return propose.Uniform(h, r, "drawn uniformly: all that the model proposes was tried before, is too close to a trial that is out, or is forbidden")
}

// modelled is the highest rung with enough outcomes, of which at least one is
// a value, or -1.
func (t *TPE) modelled(h *ladder.History) int {
	for i := len(h.Rungs) - 1; i >= 0; i-- {
		if r := &h.Rungs[i]; len(r.Entries) >= startup && r.Usable() > 0 {
			return i
		}
	}
	return -1
}

// fit brings the groups up to the rung's data and to the trials now pending.
func (t *TPE) fit(h *ladder.History, at int) {
	t.pending = h.Pending()
	entries := h.Rungs[at].Entries
	outcomes := 0
	for i := range h.Rungs[:at+1] {
		outcomes += len(h.Rungs[i].Entries)
	}
	anew := t.rung != at || t.size != len(entries) || t.below && t.outcomes != outcomes
	var bad []ladder.Entry
	if anew && t.below {
		bad = h.Bad(at, true, kde.MaxObservations)
	}
	for _, g := range t.groups {
		if anew {
			g.fit(h, entries, bad)
		}
		g.wait(h, t.pending)
	}
	t.rung, t.size, t.outcomes = at, len(entries), outcomes
}

// draw returns a masked point that is allowed, new, and not close to a pending
// trial. Group by group it takes the candidate with the highest ratio of the
// densities that is.
func (t *TPE) draw(h *ladder.History, r *rand.Rand) ([]float64, bool) {
	point := make([]float64, len(h.Cube.Dimensions()))
	for d := range point {
		point[d] = math.NaN()
	}
	for _, g := range t.groups {
		if !g.exists(h.Cube, point) {
			continue
		}
		t.candidates = g.candidates(r, t.candidates[:0], &t.memory)
		found := slices.IndexFunc(t.candidates, func(c kde.Candidate) bool {
			g.put(point, c.Point)
			// Without the groups to come this is no whole configuration yet,
			// and so not the same as any trial's.
			if h.Cube.Forbids(point) {
				return false
			}
			_, ok := propose.Fresh(h, point)
			return ok
		})
		if found < 0 {
			return nil, false
		}
	}
	return point, true
}

// group is the parameters that exist under the same conditions, with the
// densities of their good and their bad values.
type group struct {
	at []int // the parameters' places in the space
	// conditional says that not every trial has the group.
	conditional bool
	good        kde.Density
	bad         kde.Density
	// pending are trials without a result. They count as bad ones.
	pending kde.Density
	// weights are of the good kernels, with a mean of 1, and logs their logarithms.
	weights, logs []float64
	// sums is a buffer.
	sums []float64
}

// newGroups are in an order in which each one's conditions are decided before it.
func newGroups(s space.Space) []*group {
	var groups []*group
	byCondition := map[string]*group{}
	for i, p := range s.Parameters {
		key := fmt.Sprint(p.When)
		g, known := byCondition[key]
		if !known {
			g = &group{conditional: len(p.When) > 0}
			byCondition[key] = g
			groups = append(groups, g)
		}
		g.at = append(g.at, i)
	}
	return groups
}

// exists reports whether the group exists beside what the point has already.
func (g *group) exists(cube *space.Cube, point []float64) bool {
	for _, d := range g.at {
		point[d] = 0.5
	}
	cube.Mask(point)
	return !math.IsNaN(point[g.at[0]])
}

func (g *group) put(point, values []float64) {
	for i, d := range g.at {
		point[d] = values[i]
	}
}

// of returns the group's part of the trials' points, without those trials in
// which the group does not exist.
func (g *group) of(h *ladder.History, trials []int) [][]float64 {
	points := make([][]float64, 0, len(trials)+1)
	for _, number := range trials {
		whole := h.Points[number]
		if math.IsNaN(whole[g.at[0]]) {
			continue
		}
		part := make([]float64, len(g.at))
		for i, d := range g.at {
			part[i] = whole[d]
		}
		points = append(points, part)
	}
	return points
}

// fit splits the outcomes of trials that have the group, best first, into good
// and bad ones; more bad ones are those of lower rungs. Both densities get a
// uniform kernel besides: the prior.
func (g *group) fit(h *ladder.History, entries, more []ladder.Entry) {
	mine := g.having(h, entries)
	r := ladder.Rung{Entries: mine}
	good := min(int(math.Ceil(goodShare*float64(len(mine)))), r.Usable())
	better := ladder.SpreadOut(mine[:good], kde.MaxObservations)
	worse := append(ladder.SpreadOut(mine[good:], kde.MaxObservations), g.having(h, more)...)
	g.weights = improvements(better, mine[good:])
	g.logs = g.logs[:0]
	for _, weight := range g.weights {
		g.logs = append(g.logs, math.Log(weight))
	}
	g.place(h, &g.good, better)
	g.place(h, &g.bad, ladder.SpreadOut(worse, kde.MaxObservations))
}

// having are the outcomes of trials that have the group.
func (g *group) having(h *ladder.History, entries []ladder.Entry) []ladder.Entry {
	if !g.conditional {
		return entries
	}
	var mine []ladder.Entry
	for _, e := range entries {
		if !math.IsNaN(h.Points[e.Trial][g.at[0]]) {
			mine = append(mine, e)
		}
	}
	return mine
}

// improvements are the weights of the good trials' kernels: by how much each
// is better than the best bad one (Watanabe 2023, "expected improvement"), and
// for the prior the mean. They are scaled to the mean of 1. Where the
// improvements are no numbers to compare, all weigh the same.
func improvements(good, bad []ladder.Entry) []float64 {
	weights := make([]float64, len(good)+1)
	total := 0.0
	if len(bad) > 0 && !bad[0].Failed && bad[0].Violation == 0 {
		for i, e := range good {
			weights[i] = e.Score - bad[0].Score
			total += weights[i]
		}
	}
	mean := total / float64(len(good))
	usable := mean > 0 && !math.IsInf(mean, 0)
	for i := range weights {
		switch {
		case !usable || i == len(good):
			weights[i] = 1
		default:
			weights[i] /= mean
		}
	}
	return weights
}

// place puts the trials' kernels and the prior's into the density.
func (g *group) place(h *ladder.History, k *kde.Density, entries []ladder.Entry) {
	trials := make([]int, len(entries))
	for i, e := range entries {
		trials[i] = e.Trial
	}
	points := g.of(h, trials)
	n := float64(len(points))
	width := widestBandwidth * math.Pow(max(n, 1), -1/float64(4+len(g.at)))
	width = max(width, leastBandwidth, 1/((n+2)*(n+2)))
	prior := make([]float64, len(g.at))
	k.Dimensions, k.Bandwidth = make([]space.Dimension, len(g.at)), make([]float64, len(g.at))
	for i, d := range g.at {
		dimension := h.Cube.Dimensions()[d]
		prior[i], k.Dimensions[i] = math.NaN(), dimension
		switch choices := float64(dimension.Choices); dimension.Kind {
		case space.Continuous:
			k.Bandwidth[i] = width
		case space.Unordered:
			k.Bandwidth[i] = min(changeChance, max(1-1/choices, kde.MinChoiceBandwidth))
		case space.Ordered:
			k.Bandwidth[i] = kde.Spread(width * choices)
		}
	}
	k.Place(append(points, prior))
}

// wait notes the trials that are pending.
func (g *group) wait(h *ladder.History, pending []int) {
	g.pending.Like(&g.bad, g.of(h, pending))
}

// candidates draws from the good density and sorts by the ratio, best first.
func (g *group) candidates(r *rand.Rand, list []kde.Candidate, memory *[]float64) []kde.Candidate {
	*memory = kde.Grow(*memory, candidateCount*len(g.at))
	for i := range candidateCount {
		point := (*memory)[i*len(g.at) : (i+1)*len(g.at)]
		left, from := r.Float64()*float64(g.good.N), 0
		for left -= g.weights[0]; left >= 0 && from+1 < g.good.N; left -= g.weights[from] {
			from++
		}
		g.good.DrawFrom(r, from, 1, point)
		list = append(list, kde.Candidate{Point: point, Ratio: g.ratio(point)})
	}
	kde.SortCandidates(list)
	return list
}

// ratio is the logarithm of l(x) / g(x).
func (g *group) ratio(point []float64) float64 {
	bad := g.bad.N + g.pending.N
	g.sums = kde.Grow(g.sums, max(bad, g.good.N))
	g.good.Kernels(point, g.sums[:g.good.N])
	for i, weight := range g.logs {
		g.sums[i] += weight
	}
	good := kde.LogMean(g.sums[:g.good.N])
	g.bad.Kernels(point, g.sums[:g.bad.N])
	g.pending.Kernels(point, g.sums[g.bad.N:bad])
	return good - kde.LogMean(g.sums[:bad])
}
