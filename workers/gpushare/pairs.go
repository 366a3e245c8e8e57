package gpushare

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// The grounds on which two trainings are told about.
const (
	Measured  = "seen"    // such two were seen together
	ByFactors = "factors" // each was seen beside others: a table is completed
	ByUse     = "use"     // by what both use of the GPU, from other pairs
)

const (
	// seed is that of every model: what is the same is learned the same.
	seed = 1
	// leastForFactors and leastForUse are from how many pairs each of the two is
	// learned at least. A pair of two kinds counts once for each of them.
	leastForFactors, leastForUse = 8, 12
	// parts is into how many the pairs are cut to hide them in turn.
	parts = 5
)

// pairModels are what was learned of pairs; nil is not learned.
type pairModels struct {
	factors *interference.Factors
	line    *interference.Line
	// in is in how many pairs a kind was; off is by how much the speeds of pairs
	// that were hidden were wrong: for half of them by no more than that.
	in                  map[string]int
	pairs               int
	factorsOff, lineOff float64
	told                []PairModel
}

// PairModel is what was learned of pairs on one of the grounds.
type PairModel struct {
	Basis string
	// Pairs is from how many it was learned. Off is by how much the speeds of
	// hidden pairs were wrong, for half of them by no more than that, and PlainOff
	// the same of the mean of the others.
	Pairs         int
	Off, PlainOff float64
}

// PairSummary is what is known of trainings that share such a GPU.
type PairSummary struct {
	// Kinds is how many kinds of trainings were seen, Seen how many pairs of them
	// often enough to count.
	Kinds, Seen int
	Learned     []PairModel
	// Reason is why nothing is told of pairs that were not seen.
	Reason string
}

// PairSummary is what is known of trainings that share such a GPU.
func (g *GPU) Pairs() PairSummary {
	t := &g.colocations
	told := PairSummary{Kinds: len(t.alone), Seen: len(t.pairs()), Learned: t.models.told}
	switch {
	case len(told.Learned) > 0:
	case told.Seen < leastForFactors:
		told.Reason = fmt.Sprintf("%d pairs were seen for long enough: at least %d are needed to tell others", told.Seen, leastForFactors)
	case t.models.pairs == 0:
		told.Reason = "what was seen is being learned"
	default:
		told.Reason = fmt.Sprintf("of %d pairs, what was hidden is told no better than by their mean: more are needed", t.models.pairs)
	}
	return told
}

// Speeds is how fast two trainings should be that share a GPU, each in parts of
// its speed alone.
type Speeds struct {
	Own, Other float64
	// Basis is Measured, ByFactors or ByUse; only the first was measured. Off is by
	// how much such speeds were wrong where they were hidden, for half of them,
	// and Pairs from how many pairs that was learned.
	Basis string
	Off   float64
	Pairs int
}

// Gain is what both do together, in parts of what one does alone: below 1, they
// would be done sooner one after the other.
func (b Speeds) Gain() float64 { return b.Own + b.Other }

// leastGain is what both must do together, so that an estimate on the edge is no
// reason to share.
const leastGain = 1.05

// Loses reports whether both would be done as soon, or sooner, one after the other.
func (b Speeds) Loses() bool { return b.Gain() < leastGain }

// String says in words how fast both should be.
func (b Speeds) String() string {
	said := fmt.Sprintf("one runs at %.2f of its speed and the other at %.2f", b.Own, b.Other)
	switch b.Basis {
	case Measured:
		return "such two were seen together: " + said
	case ByFactors:
		return fmt.Sprintf("%s by what each did beside others (an estimate from %d pairs, usually off by %.2f)", said, b.Pairs, b.Off)
	}
	return fmt.Sprintf("%s by what both use of the GPU (an estimate from %d pairs, usually off by %.2f)", said, b.Pairs, b.Off)
}

// Colocated is how fast the two should be beside each other; false where nothing is
// known of such two. Utilization and memory are asked only where the kinds were
// never seen.
func (g *GPU) Colocated(own, other Training) (Speeds, bool) {
	t := &g.colocations
	first, one := t.measured(own.Kind, other.Kind)
	second, two := t.measured(other.Kind, own.Kind)
	if one && two {
		return Speeds{Own: first, Other: second, Basis: Measured, Pairs: 1}, true
	}
	p := t.models
	// A kind that was in one pair only is known by nothing but that pair.
	if p.factors != nil && p.in[own.Kind] > 1 && p.in[other.Kind] > 1 {
		first, one = p.factors.Speed(own.Kind, other.Kind)
		second, two = p.factors.Speed(other.Kind, own.Kind)
		if one && two {
			return Speeds{Own: clip(first), Other: clip(second), Basis: ByFactors, Off: p.factorsOff, Pairs: p.pairs}, true
		}
	}
	if p.line != nil && own.used() && other.used() {
		first, second := p.line.Speed(own.use(), other.use()), p.line.Speed(other.use(), own.use())
		return Speeds{Own: clip(first), Other: clip(second), Basis: ByUse, Off: p.lineOff, Pairs: p.pairs}, true
	}
	return Speeds{}, false
}

func (a Training) used() bool { return a.Utilization > 0 && a.MemoryBytes > 0 }

// clip holds that nobody is told to be faster beside another than alone.
func clip(speed float64) float64 { return min(max(speed, 0), 1) }

// use is what the training uses, as the line takes it.
func (a Training) use() interference.Use {
	return interference.Use{Utilization: min(1, a.Utilization), MemoryBytes: a.MemoryBytes}
}

// learnPairs learns factors, and a line where it is known what both use, and keeps
// what tells hidden pairs better than the mean of the others.
func learnPairs(pairs []pair) pairModels {
	p := pairModels{in: map[string]int{}, pairs: len(pairs)}
	for _, one := range pairs {
		p.in[one.kinds[0].Kind]++
		if one.kinds[1].Kind != one.kinds[0].Kind {
			p.in[one.kinds[1].Kind]++
		}
	}
	used := slices.DeleteFunc(slices.Clone(pairs), func(one pair) bool { return !one.kinds[0].used() || !one.kinds[1].used() })
	if len(pairs) >= leastForFactors {
		off, plain := hide(pairs, func(rest []pair) (teller, error) {
			factors, err := factorsOf(rest)
			return func(own, other Training) (float64, bool) { return factors.Speed(own.Kind, other.Kind) }, err
		})
		if factors, err := factorsOf(pairs); err == nil && off < plain {
			p.factors, p.factorsOff = factors, off
			p.told = append(p.told, PairModel{ByFactors, len(pairs), off, plain})
		}
	}
	if len(used) >= leastForUse {
		off, plain := hide(used, func(rest []pair) (teller, error) {
			line, err := lineOf(rest)
			return func(own, other Training) (float64, bool) { return line.Speed(own.use(), other.use()), true }, err
		})
		if line, err := lineOf(used); err == nil && off < plain {
			p.line, p.lineOff = line, off
			p.told = append(p.told, PairModel{ByUse, len(used), off, plain})
		}
	}
	return p
}

// teller is how fast one should be beside the other; false where that is not known.
type teller func(own, other Training) (float64, bool)

func factorsOf(pairs []pair) (*interference.Factors, error) {
	var speeds []interference.Speed
	for _, one := range pairs {
		first, second := one.kinds[0].Kind, one.kinds[1].Kind
		speeds = append(speeds, interference.Speed{Own: first, Other: second, Speed: one.speeds[0]})
		if first != second {
			speeds = append(speeds, interference.Speed{Own: second, Other: first, Speed: one.speeds[1]})
		}
	}
	return interference.TrainFactors(speeds, seed)
}

func lineOf(pairs []pair) (*interference.Line, error) {
	var seen []interference.Beside
	for _, one := range pairs {
		for k, kind := range one.kinds {
			seen = append(seen, interference.Beside{Own: kind.use(), Other: one.kinds[1-k].use(), Speed: one.speeds[k]})
		}
	}
	return interference.TrainLine(seen)
}

// hide predicts a part of the pairs from the others, in turn: the median of how
// far the speeds are off, and of how far the mean of the others is.
func hide(pairs []pair, learn func([]pair) (teller, error)) (off, plain float64) {
	var offs, plains []float64
	order := rand.New(rand.NewPCG(seed, 17)).Perm(len(pairs)) //nolint:gosec // what is drawn has to repeat
	for part := range parts {
		var rest, hidden []pair
		for at, i := range order {
			if at%parts == part {
				hidden = append(hidden, pairs[i])
			} else {
				rest = append(rest, pairs[i])
			}
		}
		say, err := learn(rest)
		if err != nil {
			return math.Inf(1), 0
		}
		mean := meanSpeed(rest)
		for _, one := range hidden {
			for k, speed := range one.speeds {
				said, known := say(one.kinds[k], one.kinds[1-k])
				if !known {
					said = mean
				}
				offs, plains = append(offs, math.Abs(clip(said)-speed)), append(plains, math.Abs(mean-speed))
			}
		}
	}
	slices.Sort(offs)
	slices.Sort(plains)
	return offs[len(offs)/2], plains[len(plains)/2]
}

func meanSpeed(pairs []pair) (mean float64) {
	for _, one := range pairs {
		mean += (one.speeds[0] + one.speeds[1]) / 2 / float64(len(pairs))
	}
	return mean
}
