package promotion

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/ladder"
)

// curves promotes, or starts, whatever improves the best most for the next unit of
// cost, by a model of how rungs rank (in the spirit of freeze-thaw; Swersky et al. 2014).
// Ranks at a rung are normal scores, a chain with the rungs' correlations. A trial's index
// is the price of an epoch at which going on, and stopping whenever that no longer pays,
// is worth nothing (Gittins 1979).
type curves struct {
	asynchronous
	costs []float64 // of each rung from the one below
	// before is the normal score that counts as the best while nothing is measured in full.
	before float64
	bottom bool // new trials start at the lowest rung
}

func newCurves(base asynchronous, rungs []budget.Rung, bottom bool) curves {
	c := curves{asynchronous: base, bottom: bottom, costs: make([]float64, len(rungs))}
	for i, r := range rungs {
		epochs := float64(r.Budget.Epochs)
		if i > 0 && !r.FromScratch {
			epochs -= float64(rungs[i-1].Budget.Epochs)
		}
		c.costs[i] = epochs * r.Budget.DataFraction
	}
	if bottom {
		c.before = 1.5
	}
	return c
}

// view is what the model makes of a history.
type view struct {
	scores [][]float64 // x of each entry of each rung
	step   []float64   // correlation of a rung with the one above
	toTop  []float64   // and with the top
	fresh  float64     // mean of new trials at rung 0
}

// The correlation of neighbouring rungs before any was measured, and how many trials it
// is worth.
const (
	priorRho  = 0.8
	priorSize = 5
)

func (c curves) look(h *ladder.History) view {
	n := len(h.Rungs)
	v := view{scores: make([][]float64, n), step: make([]float64, n), toTop: make([]float64, n)}
	at := make([]map[int]float64, n) // x by trial
	for r := range n {
		entries := h.Rungs[r].Entries
		v.scores[r], at[r] = make([]float64, len(entries)), map[int]float64{}
		// the mixture of what was expected of these trials
		type gauss struct{ mean, sd float64 }
		mix := make([]gauss, len(entries))
		selected := false
		for i, e := range entries {
			mix[i] = gauss{0, 1}
			if r > 0 {
				if x, has := at[r-1][e.Trial]; has {
					selected = true
					mix[i] = gauss{v.step[r-1] * x, math.Sqrt(1 - v.step[r-1]*v.step[r-1])}
				}
			}
		}
		for i := range entries {
			p := 1 - (float64(i)+0.5)/float64(len(entries))
			if !selected {
				v.scores[r][i] = quantile(p)
			} else {
				low, high := -6.0, 6.0
				for range 30 {
					mid, below := (low+high)/2, 0.0
					for _, g := range mix {
						below += phi((mid - g.mean) / g.sd)
					}
					if below/float64(len(mix)) < p {
						low = mid
					} else {
						high = mid
					}
				}
				v.scores[r][i] = low
			}
			at[r][entries[i].Trial] = v.scores[r][i]
		}
		if r < n-1 {
			v.step[r] = correlation(h, r, at[r])
		}
	}
	v.toTop[n-1] = 1
	for r := n - 2; r >= 0; r-- {
		v.toTop[r] = v.toTop[r+1] * v.step[r]
	}
	// the newest starts at the bottom
	var recent []float64
	for i := len(h.Arrivals) - 1; i >= 0 && len(recent) < 10; i-- {
		if x, has := at[0][h.Arrivals[i]]; has {
			recent = append(recent, x)
		}
	}
	sum := 0.0
	for _, x := range recent {
		sum += x
	}
	v.fresh = sum / (float64(len(recent)) + 5)
	return v
}

// correlation of a rung's normal scores with the next rung's ranks, as if nobody had been chosen.
func correlation(h *ladder.History, r int, below map[int]float64) float64 {
	var xs, ys []float64
	next := h.Rungs[r+1].Entries
	var pairs []int
	for i, e := range next {
		if _, has := below[e.Trial]; has && !e.Failed && !e.Diverged() {
			pairs = append(pairs, i)
		}
	}
	for k, i := range pairs {
		xs = append(xs, below[next[i].Trial])
		ys = append(ys, quantile(1-(float64(k)+0.5)/float64(len(pairs))))
	}
	prior := math.Atanh(priorRho)
	n := float64(len(xs))
	if n < 4 {
		return priorRho
	}
	mx, my := mean(xs), mean(ys)
	sxx, syy, sxy := 0.0, 0.0, 0.0
	for i := range xs {
		sxx += (xs[i] - mx) * (xs[i] - mx)
		syy += (ys[i] - my) * (ys[i] - my)
		sxy += (xs[i] - mx) * (ys[i] - my)
	}
	if sxx <= 0 || syy <= 0 {
		return priorRho
	}
	rho := sxy / math.Sqrt(sxx*syy)
	k := 1 / math.Max(0.2, math.Sqrt(sxx/n)) // range restriction (Thorndike's case 2)
	if k > 1 {
		rho = rho * k / math.Sqrt(1-rho*rho+rho*rho*k*k)
	}
	rho = max(-0.95, min(0.98, rho))
	z := ((n-3)*math.Atanh(rho) + priorSize*prior) / (n - 3 + priorSize)
	return max(0.02, min(0.98, math.Tanh(z)))
}

func mean(xs []float64) float64 {
	s := 0.0
	for _, x := range xs {
		s += x
	}
	return s / float64(len(xs))
}

func phi(x float64) float64      { return 0.5 * math.Erfc(-x/math.Sqrt2) }
func quantile(p float64) float64 { return math.Sqrt2 * math.Erfinv(2*p-1) }

type choice struct {
	index float64
	from  int // rung; -1: a new trial
	place int
	to    int
}

const half, width = 40, 5.0 // the grid of normal scores, and its half width

func gridAt(i int) float64 { return width * float64(i-half) / half }

// kernel has the weights of the next rung's scores for each score.
func kernel(rho float64) [][]float64 {
	sd := math.Sqrt(1 - rho*rho)
	k := make([][]float64, 2*half+1)
	for i := range k {
		k[i] = weights(rho*gridAt(i), sd)
	}
	return k
}

func weights(mean, sd float64) []float64 {
	w, sum := make([]float64, 2*half+1), 0.0
	for j := range w {
		d := (gridAt(j) - mean) / sd
		w[j] = math.Exp(-d * d / 2)
		sum += w[j]
	}
	for j := range w {
		w[j] /= sum
	}
	return w
}

func dot(a, b []float64) float64 {
	s := 0.0
	for i := range a {
		s += a[i] * b[i]
	}
	return s
}

// values is what a trial with each score at each rung is worth at the price.
func (c curves) values(kernels [][][]float64, best, price float64) [][]float64 {
	top := len(c.costs) - 1
	v := make([][]float64, top+1)
	for r := top; r >= 0; r-- {
		v[r] = make([]float64, 2*half+1)
		for i := range v[r] {
			if r == top {
				v[r][i] = max(0, gridAt(i)-best)
			} else {
				v[r][i] = max(0, dot(kernels[r][i], v[r+1])-price*c.costs[r+1])
			}
		}
	}
	return v
}

func (c curves) best(h *ladder.History) (paused, fresh choice) {
	view := c.look(h)
	top := len(h.Rungs) - 1
	best := c.before
	if r := &h.Rungs[top]; r.Usable() > 0 {
		best = max(best, view.scores[top][0])
	}
	kernels := make([][][]float64, top)
	for r := range kernels {
		kernels[r] = kernel(view.step[r])
	}
	// a new trial's index, for each rung at which it may first be looked at
	fresh = choice{from: -1, index: -1}
	for to := 0; to <= top; to++ {
		cost, shift := 0.0, view.fresh
		for r := 0; r <= to; r++ {
			cost += c.costs[r]
			if r > 0 {
				shift *= view.step[r-1]
			}
		}
		w := weights(shift, 1)
		low, high := 0.0, 10/cost
		for range 24 {
			price := (low + high) / 2
			if dot(w, c.values(kernels, best, price)[to]) > price*cost {
				low = price
			} else {
				high = price
			}
		}
		if low > fresh.index {
			fresh = choice{from: -1, to: to, index: low}
		}
		if c.bottom {
			break
		}
	}
	paused = choice{from: -1, index: -1}
	v := c.values(kernels, best, fresh.index)
	for r := range top {
		for i, e := range h.Rungs[r].Entries {
			if !e.Promotable() || e.Violation > 0 {
				continue
			}
			rho := view.step[r]
			w := weights(rho*view.scores[r][i], math.Sqrt(1-rho*rho))
			index := dot(w, v[r+1]) / c.costs[r+1]
			if index > paused.index {
				paused = choice{index: index, from: r, place: i, to: r + 1}
			}
			break // who is behind is worth less
		}
	}
	return paused, fresh
}

func (c curves) Earned(h *ladder.History, o Outlook) (Step, bool) {
	paused, fresh := c.best(h)
	if paused.index < 0 || !o.Last && paused.index <= fresh.index {
		return Step{}, false
	}
	e := h.Rungs[paused.from].Entries[paused.place]
	return Step{Trial: e.Trial, Reason: fmt.Sprintf("rank %d of %d at rung %d: an improvement of %.3g by cost, %.3g by a new trial",
		paused.place+1, len(h.Rungs[paused.from].Entries), paused.from, paused.index, fresh.index)}, true
}

func (c curves) Start(h *ladder.History) ladder.Slot {
	_, fresh := c.best(h)
	return ladder.Slot{Rung: fresh.to}
}

func (c curves) Earnable(h *ladder.History, fresh, room int) int {
	count := 0
	for from := range len(h.Rungs) - 1 {
		count += h.Rungs[from].Promotable(len(h.Rungs[from].Entries))
	}
	return count
}
