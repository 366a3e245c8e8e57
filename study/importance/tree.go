package importance

import (
	"cmp"
	"math"
	"math/bits"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/study/space"
)

// node is a split, or a leaf where left is 0.
type node struct {
	parameter   int32
	left, right int32
	// set are the bins that go left.
	set binSet
	// elsewhere is set where those without the parameter go right.
	elsewhere bool
	value     float64
}

// tree is a regression tree; its root is the first node.
type tree []node

func (t tree) predict(bins []uint8) float64 {
	at := int32(0)
	for t[at].left != 0 {
		n := &t[at]
		bin := bins[n.parameter]
		switch {
		case bin == missing && n.elsewhere, bin != missing && n.set>>bin&1 == 0:
			at = n.right
		default:
			at = n.left
		}
	}
	return t[at].value
}

// grower grows one tree.
type grower struct {
	Growth
	axes    []axis
	columns [][]uint8 // each parameter's bins, by observation
	scores  []float64
	gains   []float64
	random  *rand.Rand
	// least is the squared error that a split must take away.
	least float64
	nodes tree
	order []int // the parameters, shuffled anew for each split
	spare []int32
}

func (g *grower) tree(bag []int32) tree {
	g.order, g.spare = make([]int, len(g.axes)), make([]int32, len(bag))
	for i := range g.order {
		g.order[i] = i
	}
	g.grow(bag)
	return g.nodes
}

// grow adds the node for the draws, and all below it, and returns its place.
func (g *grower) grow(bag []int32) int32 {
	at := int32(len(g.nodes))
	g.nodes = append(g.nodes, node{value: g.mean(bag)})
	best, found := g.split(bag)
	if !found {
		return at
	}
	count := g.partition(bag, best)
	g.gains[best.parameter] += best.gain
	n := node{parameter: int32(best.parameter), set: best.set, elsewhere: 2*count < len(bag), value: g.nodes[at].value}
	n.left = g.grow(bag[:count])
	n.right = g.grow(bag[count:])
	g.nodes[at] = n
	return at
}

func (g *grower) mean(bag []int32) float64 {
	sum := 0.0
	for _, i := range bag {
		sum += g.scores[i]
	}
	return sum / float64(len(bag))
}

// partition moves the draws that go left to the front and counts them.
func (g *grower) partition(bag []int32, by split) int {
	count, rest, column := 0, g.spare[:0], g.columns[by.parameter]
	for _, i := range bag {
		if by.set>>column[i]&1 == 1 {
			bag[count] = i
			count++
		} else {
			rest = append(rest, i)
		}
	}
	copy(bag[count:], rest)
	return count
}

// split sends the bins of the set left. gain is the squared error it takes away.
type split struct {
	parameter int
	set       binSet
	gain      float64
}

// split finds the best split of the draws over some of the parameters. One that
// only some of the draws have is unlocked first: the split is then the one of
// the condition that keeps the others from having it.
func (g *grower) split(bag []int32) (best split, found bool) {
	if len(bag) < 2*g.Leaf {
		return split{}, false
	}
	best.gain = g.least
	tries := int(math.Ceil(g.Share * float64(len(g.order))))
	for k := range g.order {
		if k >= tries && found {
			break
		}
		other := k + g.random.IntN(len(g.order)-k)
		g.order[k], g.order[other] = g.order[other], g.order[k]
		candidate, absent := g.try(bag, g.order[k])
		if !(candidate.gain > best.gain) {
			continue
		}
		if absent {
			unlocked, ok := g.unlock(bag, candidate.parameter)
			if !ok {
				continue
			}
			unlocked.gain = candidate.gain
			candidate = unlocked
		}
		best, found = candidate, true
	}
	return best, found
}

// histogram is what the draws in each bin add up to.
type histogram struct {
	sums   [maxBins]float64
	counts [maxBins]float64
	seen   binSet
	sum    float64
	count  float64
}

// try finds the best split on one parameter, among the draws that have it, and
// whether some have not.
func (g *grower) try(bag []int32, parameter int) (best split, absent bool) {
	var h histogram
	column := g.columns[parameter]
	for _, i := range bag {
		bin := column[i]
		if bin == missing {
			absent = true
			continue
		}
		h.seen |= 1 << bin
		h.sums[bin] += g.scores[i]
		h.counts[bin]++
		h.sum += g.scores[i]
		h.count++
	}
	best = split{parameter: parameter}
	if bits.OnesCount64(h.seen) < 2 {
		return best, absent
	}
	unordered := g.axes[parameter].dimension.Kind == space.Unordered
	var ordered [maxBins]uint8
	bins := ordered[:0]
	for rest := h.seen; rest != 0; rest &= rest - 1 {
		bins = append(bins, uint8(bits.TrailingZeros64(rest)))
	}
	if unordered { // in the order of their means the best set is a prefix (Fisher 1958)
		slices.SortStableFunc(bins, func(a, b uint8) int { return cmp.Compare(h.sums[a]/h.counts[a], h.sums[b]/h.counts[b]) })
	}
	cut, gain, heavier := h.cut(bins, float64(g.Leaf))
	if cut < 0 {
		return best, absent
	}
	best.gain = gain
	if !unordered {
		best.set = ^binSet(0) >> (maxBins - 1 - (int(bins[cut])+int(bins[cut+1])-1)/2)
		return best, absent
	}
	for _, bin := range bins[:cut+1] {
		best.set |= 1 << bin
	}
	if heavier {
		best.set |= ^h.seen // nobody knows: with the many
	}
	return best, absent
}

// cut is the place in the bins behind which they are best cut in two leaves of at least
// so many draws, or -1; with the squared error that takes away, and whether more draws lie before it.
func (h *histogram) cut(bins []uint8, leaf float64) (at int, gain float64, heavier bool) {
	at = -1
	sum, count := 0.0, 0.0
	mean := h.sum / h.count
	for place, bin := range bins[:len(bins)-1] {
		sum += h.sums[bin]
		count += h.counts[bin]
		if count < leaf || h.count-count < leaf {
			continue
		}
		away := sum - count*mean
		if g := away * away * h.count / (count * (h.count - count)); g > gain {
			at, gain, heavier = place, g, 2*count >= h.count
		}
	}
	return at, gain, heavier
}

// unlock returns the split on the first condition in the parameter's ancestry
// that some of the draws fulfil and some do not. There is none where values of
// both kinds share a bin.
func (g *grower) unlock(bag []int32, parameter int) (split, bool) {
	for _, need := range g.axes[parameter].needs {
		fulfilled := 0
		for _, i := range bag {
			bin := g.columns[need.parameter][i]
			if bin == missing {
				return g.unlock(bag, need.parameter)
			}
			fulfilled += int(need.in >> bin & 1)
		}
		if fulfilled > 0 && fulfilled < len(bag) {
			return split{parameter: need.parameter, set: need.in}, true
		}
	}
	return split{}, false
}
