package gpushare

import (
	"fmt"
	"maps"
	"math"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/gpushare/interference"
)

// The grounds on which two trainings are told about.
const (
	Measured  = "seen"    // such two were seen together
	ByFactors = "factors" // each was seen beside others: a table is completed
	ByMean    = "mean"    // one was never seen beside others: by its family, and what those do beside the other
	ByAll     = "all"     // nothing better is learned: by the mean of all that were seen
	ByPrior   = "prior"   // nothing was seen on such a GPU: by the mean of what others recorded
)

const (
	// seed is that of every model: what is the same is learned the same.
	seed = 1
	// leastForTable is from how many pairs a table is completed at least, and
	// leastForMean from how many a kind that was never seen is told by them.
	leastForTable, leastForMean = 8, 12
	// parts is into how many the pairs, or the kinds, are cut to hide them in turn.
	parts = 5
	// priorSpeed is the mean of 636 pairs that Gavel recorded on K80 (0.54) and V100
	// (0.66; Narayanan and others, OSDI 2020). It counts as priorPairs of one's own.
	priorSpeed, priorPairs = 0.6, 8
)

// pairModels are what was learned of pairs; nil is not learned.
type pairModels struct {
	// mean is the speed of all pairs; 0 where none was seen.
	mean  float64
	table *interference.Table
	// means says that kinds that were never seen are told too.
	means bool
	// in is in how many pairs a kind was; off is by how much the speeds of pairs
	// that were hidden were wrong: for half of them by no more than that.
	in                map[string]int
	pairs             int
	tableOff, meanOff float64
	told              []protocol.GPUPairModel
}

// Pairs is what is known of trainings that share such a GPU.
func (g *GPU) Pairs() protocol.PoolGPUPairs {
	t := &g.colocations
	told := protocol.PoolGPUPairs{Kinds: len(t.alone), Seen: len(t.pairs()), Learned: t.models.told}
	switch {
	case len(told.Learned) > 0:
	case told.Seen < leastForTable:
		told.Reason = fmt.Sprintf("%d pairs were seen for long enough: at least %d are needed to tell others; until then, each counts as the mean of those pairs, or of recorded ones", told.Seen, leastForTable)
	case t.models.pairs == 0:
		told.Reason = "what was seen is being learned"
	default:
		told.Reason = fmt.Sprintf("of %d pairs, what was hidden is told no better than by their mean: others count as that mean", t.models.pairs)
	}
	return told
}

// Speeds is how fast two trainings should be that share a GPU, each in parts of
// its speed alone.
type Speeds struct {
	Own, Other float64
	// Basis is Measured, ByFactors, ByMean, ByAll or ByPrior; only the first was
	// measured. Off is by how much such speeds were wrong where they were hidden, for
	// half of them, if that is known, and Pairs from how many pairs that was learned.
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
	case ByAll:
		return fmt.Sprintf("%s as the %d pairs that were seen do on average (an estimate: nothing is known of such two)", said, b.Pairs)
	case ByPrior:
		return said + " as recorded trainings of others do on average (an estimate: no pair was seen on such a GPU)"
	}
	return fmt.Sprintf("%s by what others did beside one of the two (an estimate from %d pairs, usually off by %.2f)", said, b.Pairs, b.Off)
}

// Colocated is how fast the two should be beside each other.
func (g *GPU) Colocated(own, other Training) Speeds {
	t := &g.colocations
	first, one := t.measured(own.Kind, other.Kind)
	second, two := t.measured(other.Kind, own.Kind)
	if one && two {
		return Speeds{Own: first, Other: second, Basis: Measured, Pairs: 1}
	}
	p := t.models
	if p.table == nil {
		return p.usual(own, other)
	}
	// A kind that was in one pair only is known by nothing but that pair.
	said := Speeds{Basis: ByFactors, Off: p.tableOff, Pairs: p.pairs}
	if min(p.in[own.Kind], p.in[other.Kind]) < 2 {
		said.Basis, said.Off = ByMean, p.meanOff
	}
	first, one = p.table.Speed(own.Kind, other.Kind)
	second, two = p.table.Speed(other.Kind, own.Kind)
	if !one || !two || said.Basis == ByMean && !p.means {
		return p.usual(own, other)
	}
	said.Own, said.Other = clip(first), clip(second)
	return said
}

// usual is the mean of all pairs, or less where both want more of the GPU than that
// leaves.
func (p pairModels) usual(own, other Training) Speeds {
	said := Speeds{Basis: ByAll, Pairs: p.pairs}
	if p.pairs == 0 {
		said.Basis = ByPrior
	}
	n := float64(p.pairs)
	said.Own = min((priorPairs*priorSpeed+n*p.mean)/(priorPairs+n), 1/max(1, own.Utilization+other.Utilization))
	said.Other = said.Own
	return said
}

// familyOf is what trainings of a kind are near to each other by: their model, or their
// study where that is not known.
func familyOf(kind string) string {
	parts := strings.Split(kind, "/")
	if len(parts) != 3 || parts[1] == "" {
		return parts[0]
	}
	return parts[1]
}

// clip holds that nobody is told to be faster beside another than alone.
func clip(speed float64) float64 { return min(max(speed, 0), 1) }

// learnPairs completes a table, where that tells hidden pairs better than the mean of the
// others. It has it tell of kinds that were never seen, where that is so of hidden
// kinds.
func learnPairs(pairs []pair) pairModels {
	p := pairModels{in: map[string]int{}, pairs: len(pairs), mean: meanSpeed(pairs)}
	for _, one := range pairs {
		p.in[one.kinds[0].Kind]++
		if one.kinds[1].Kind != one.kinds[0].Kind {
			p.in[one.kinds[1].Kind]++
		}
	}
	if len(pairs) < leastForTable {
		return p
	}
	off, plain := hide(pairs, drawnPairs(pairs))
	table, err := completed(pairs)
	if err != nil || off >= plain {
		return p
	}
	p.table, p.tableOff = table, off
	p.told = append(p.told, protocol.GPUPairModel{Basis: ByFactors, Pairs: len(pairs), Off: off, PlainOff: plain})
	if len(pairs) < leastForMean {
		return p
	}
	if off, plain := hide(pairs, byKinds(pairs)); off < plain {
		p.means, p.meanOff = true, off
		p.told = append(p.told, protocol.GPUPairModel{Basis: ByMean, Pairs: len(pairs), Off: off, PlainOff: plain})
	}
	return p
}

func completed(pairs []pair) (*interference.Table, error) {
	var speeds []interference.Speed
	for _, one := range pairs {
		first, second := one.kinds[0].Kind, one.kinds[1].Kind
		speeds = append(speeds, interference.Speed{Own: first, Other: second, Speed: one.speeds[0]})
		if first != second {
			speeds = append(speeds, interference.Speed{Own: second, Other: first, Speed: one.speeds[1]})
		}
	}
	return interference.Complete(speeds, familyOf)
}

// drawnPairs are the places of the pairs in parts that are drawn.
func drawnPairs(pairs []pair) [][]int {
	hidden := make([][]int, parts)
	for at, i := range rand.New(rand.NewPCG(seed, 17)).Perm(len(pairs)) { //nolint:gosec // what is drawn has to repeat
		hidden[at%parts] = append(hidden[at%parts], i)
	}
	return hidden
}

// byKinds are the places of the pairs of a part of the kinds, in turn.
func byKinds(pairs []pair) [][]int {
	kinds := map[string]int{}
	for _, one := range pairs {
		kinds[one.kinds[0].Kind], kinds[one.kinds[1].Kind] = 0, 0
	}
	for at, kind := range slices.Sorted(maps.Keys(kinds)) {
		kinds[kind] = at % parts
	}
	hidden := make([][]int, parts)
	for i, one := range pairs {
		first, second := kinds[one.kinds[0].Kind], kinds[one.kinds[1].Kind]
		hidden[first] = append(hidden[first], i)
		if second != first {
			hidden[second] = append(hidden[second], i)
		}
	}
	return hidden
}

// hide predicts parts of the pairs from the others, in turn: the median of how
// far the speeds are off, and of how far the mean of the others is. Pairs of which
// nothing is known then are left out.
func hide(pairs []pair, hidden [][]int) (off, plain float64) {
	var offs, plains []float64
	for _, part := range hidden {
		var rest []pair
		for i, one := range pairs {
			if !slices.Contains(part, i) {
				rest = append(rest, one)
			}
		}
		table, err := completed(rest)
		if err != nil {
			return math.Inf(1), 0
		}
		mean := meanSpeed(rest)
		for _, i := range part {
			for k, speed := range pairs[i].speeds {
				said, known := table.Speed(pairs[i].kinds[k].Kind, pairs[i].kinds[1-k].Kind)
				if known {
					offs, plains = append(offs, math.Abs(clip(said)-speed)), append(plains, math.Abs(mean-speed))
				}
			}
		}
	}
	if len(offs) == 0 {
		return math.Inf(1), 0
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
