package probing

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

const (
	// indifferent is how much lower the cost has to be for a configuration to be
	// worth changing to, and worthwhile how much lower it has to be expected for
	// one to be worth measuring: the expectation of the gain, 0 where there is none.
	indifferent = 0.02
	worthwhile  = 0.01
	// patience is for how many epochs a gain is thought to last when it is set
	// against what the epoch that finds it costs.
	patience = 50
	// disturbed is by how much, of a logarithm, a single epoch may look worse than it is:
	// one that something else ran beside takes twice as long.
	disturbed = 0.7
	// mostEpochs bounds the epochs that one configuration is probed for beside
	// one number of neighbours, and twice that over all numbers.
	mostEpochs = 3
)

// Choice is what to do next.
type Choice struct {
	// Best is the index of the candidate with the lowest expected cost among
	// those that were measured; the default where nothing says otherwise.
	Best int
	// Probe is the index of the candidate to measure next; -1 when decided.
	Probe int
	// Rival is the index of the candidate for which the best one is measured again, to
	// compare the two; -1 where the probe is another one.
	Rival int
	// Surviving is how many candidates may still be the best, this one included.
	Surviving int
	// Indifferent names the knobs that make no difference at the best.
	Indifferent []string
}

// Limit is the most epochs that are spent on candidates other than the default
// and the best one: 6 and twice the number of values beyond the first of each
// knob, but no more than 6 for each of the others. A grid of 4 by 4 by 3 has 22.
func Limit(candidates []Candidate) int {
	values := map[string]map[string]bool{}
	configurations := map[string]bool{}
	for _, one := range candidates {
		configurations[one.Configuration.Key()] = true
		for name, value := range one.Configuration {
			if values[name] == nil {
				values[name] = map[string]bool{}
			}
			values[name][value.String()] = true
		}
	}
	limit := 2 * mostEpochs
	for _, of := range values {
		limit += 2 * (len(of) - 1)
	}
	return max(0, min(limit, 2*mostEpochs*(len(configurations)-1)))
}

// chooser is one call of Choose.
type chooser struct {
	*Model
	candidates []Candidate
	standard   int
	beliefs    []belief
	epochs     []int  // counted at the candidate's point
	all        []int  // counted under its configuration
	compared   []bool // under its configuration
	best       int
}

// Choose eliminates the candidates that are worse than the best measured one, or
// cannot be enough better to be worth an epoch, and picks from the rest the one
// to measure next: that with the most expected gain for what its epoch may cost,
// so that first comes what is near a configuration known to be good. A knob's
// value that was never measured comes before that, and is eliminated only for its cost. A single epoch
// never decides: without it, each elimination has to be as likely.
//
// The standard is the index of the default configuration, -1 if there is none.
// The default stays unless something is measured to be better, and knobs that
// make no difference keep its values.
//
// It is decided at the latest when [Limit] epochs were spent on candidates that
// are neither the default nor the best; these two take at most six each. Epochs
// of a run that has only one configuration say nothing and do not count: a run
// that is to probe has to have an epoch to compare with first.
func (m *Model) Choose(candidates []Candidate, standard int) Choice {
	if len(candidates) == 0 {
		return Choice{Best: -1, Probe: -1, Rival: -1}
	}
	c := chooser{Model: m, candidates: candidates, standard: standard}
	for _, one := range candidates {
		b := m.belief(one)
		c.beliefs = append(c.beliefs, b)
		here, all, compared := 0, 0, false
		for i, p := range m.points {
			if p.key == b.point.key {
				compared = compared || m.epochs[i] > 0
				all += m.counted[i]
				if p.same(b.point) {
					here += m.counted[i]
				}
			}
		}
		c.epochs, c.all, c.compared = append(c.epochs, here), append(c.all, all), append(c.compared, compared)
	}
	c.best = c.cheapest()
	choice := c.eliminate()
	if choice.Probe < 0 {
		choice.Surviving = 1
	}
	choice.Best, choice.Indifferent = c.best, c.indifferent()
	return choice
}

// cheapest is the measured candidate with the lowest expected cost. Of those that
// cost as little, as far as that is known, it is the one most like the default.
func (c *chooser) cheapest() int {
	lowest := -1
	for i := range c.candidates {
		if (c.compared[i] || i == c.standard) && (lowest < 0 || c.beliefs[i].mean < c.beliefs[lowest].mean-1e-9) {
			lowest = i
		}
	}
	if lowest < 0 {
		for i := range c.candidates {
			if lowest < 0 || c.beliefs[i].mean < c.beliefs[lowest].mean-1e-9 {
				lowest = i
			}
		}
		return lowest
	}
	best := lowest
	for i := range c.candidates {
		if !c.compared[i] && i != c.standard || c.standard < 0 {
			continue
		}
		above, deviation := c.ratio(c.beliefs[i], c.beliefs[lowest])
		if above < max(indifferent/2, deviation/2) && c.agreement(i) > c.agreement(best) {
			best = i
		}
	}
	return best
}

// agreement is how many knobs have the default's value.
func (c *chooser) agreement(i int) int {
	same := 0
	for name, value := range c.candidates[c.standard].Configuration {
		if c.candidates[i].Configuration[name] == value {
			same++
		}
	}
	return same
}

// eliminate says how many candidates may be the best, and which to measure.
func (c *chooser) eliminate() Choice {
	choice := Choice{Probe: -1, Rival: -1, Surviving: 1}
	var promising, doubtful []int
	for i := range c.candidates {
		if i == c.best || c.beliefs[i].point.same(c.beliefs[c.best].point) {
			continue
		}
		if c.promising(i) {
			choice.Surviving++
			promising = append(promising, i)
		} else if c.doubtful(i) {
			choice.Surviving++
			doubtful = append(doubtful, i)
		}
	}
	if c.spent() >= Limit(c.candidates) {
		return choice
	}
	news := slices.DeleteFunc(slices.Clone(promising), func(i int) bool { return !c.untried(i) })
	for _, list := range [][]int{news, promising, doubtful} {
		if choice.Probe = c.pick(list); choice.Probe >= 0 {
			break
		}
	}
	// What it is compared with where that was measured less: the best one costs
	// nothing.
	if choice.Probe >= 0 && c.epochs[choice.Probe] > 0 && c.bestMeasured() <= c.epochs[choice.Probe] {
		choice.Probe, choice.Rival = c.best, choice.Probe
	}
	return choice
}

// bestMeasured counts the best one's epochs, also those of runs that have no other
// configuration: they are to be compared with what comes next.
func (c *chooser) bestMeasured() int {
	if at := c.at(c.beliefs[c.best].point); at >= 0 {
		return c.measured[at]
	}
	return 0
}

// promising reports whether a candidate is worth an epoch.
func (c *chooser) promising(i int) bool {
	worse, deviation := c.ratio(c.beliefs[i], c.beliefs[c.best])
	found := gain(worse, deviation)
	return found*patience > loss(worse, deviation) && (found > worthwhile || c.untried(i))
}

// doubtful reports whether a candidate might be the best were its one epoch disturbed. As
// long as half of the epochs are left, such ones are looked at again.
func (c *chooser) doubtful(i int) bool {
	worse, _ := c.ratio(c.beliefs[i], c.beliefs[c.best])
	return c.epochs[i] == 1 && worse < disturbed && 2*c.spent() < Limit(c.candidates)
}

// untried reports whether the candidate has a knob's value that was never measured.
func (c *chooser) untried(i int) bool {
	for name, value := range c.candidates[i].Configuration {
		if !slices.ContainsFunc(c.points, func(p point) bool { return p.configuration[name] == value }) {
			return true
		}
	}
	return false
}

// gain is the expectation of how much lower than the best's the log cost is,
// where it is lower.
func gain(worse, deviation float64) float64 {
	if deviation < 1e-9 {
		return max(0, -worse)
	}
	z := -worse / deviation
	return deviation * (math.Exp(-z*z/2)/math.Sqrt(2*math.Pi) + z*math.Erfc(-z/math.Sqrt2)/2)
}

// loss is by what part an epoch is expected to cost more than the best's.
func loss(worse, deviation float64) float64 {
	return max(0, math.Expm1(min(worse+deviation*deviation/2, 50)))
}

// pick returns the candidate with the most expected gain for what it may cost,
// -1 when none may be measured again.
func (c *chooser) pick(from []int) int {
	chosen, highest := -1, math.Inf(-1)
	for _, i := range from {
		if c.epochs[i] >= mostEpochs || c.all[i] >= 2*mostEpochs {
			continue
		}
		worse, deviation := c.ratio(c.beliefs[i], c.beliefs[c.best])
		// What it costs if things go badly counts: of two that are equally
		// unknown, the one nearer to what is known comes first.
		if value := gain(worse, deviation) / (0.05 + loss(worse+2*deviation, 0)); value > highest+1e-9 {
			chosen, highest = i, value
		}
	}
	return chosen
}

// spent is how many epochs went to configurations other than the default and the
// best, as far as they count.
func (c *chooser) spent() int {
	spent := 0
	for i, b := range c.beliefs {
		first := slices.IndexFunc(c.beliefs, func(other belief) bool { return other.point.key == b.point.key })
		if first != i || b.point.key == c.beliefs[c.best].point.key || c.standard >= 0 && b.point.key == c.beliefs[c.standard].point.key {
			continue
		}
		spent += min(c.all[i], 2*mostEpochs)
	}
	return spent
}

// indifferent names the knobs whose other values are expected to cost the same
// where nothing else differs from the best.
func (c *chooser) indifferent() []string {
	var names []string
	for _, k := range c.prior.knobs {
		others, same := 0, true
		for i, one := range c.candidates {
			if !onlyDiffers(one.Configuration, c.candidates[c.best].Configuration, k.name) {
				continue
			}
			others++
			worse, deviation := c.ratio(c.beliefs[i], c.beliefs[c.best])
			same = same && math.Abs(worse) < indifferent && deviation < 2*indifferent && !c.untried(i)
		}
		if others > 0 && same {
			names = append(names, k.name)
		}
	}
	return names
}

// onlyDiffers reports whether the configurations differ in the knob and nothing else.
func onlyDiffers(a, b system.Configuration, name string) bool {
	return a[name] != b[name] && a.With(system.Configuration{name: b[name]}).Equal(b)
}
