package importance

import (
	"cmp"
	"math"
	"math/bits"
	"slices"
)

// pairParameters bounds for how many parameters the variances of pairs are computed.
const pairParameters = 5

// Effect is the part of the variance of the score over the whole space that
// comes from one parameter alone, or from a pair beyond what each of the two
// does alone.
type Effect struct {
	// Parameter is the first of the pair; Other is empty for a single one.
	Parameter, Other string
	// Share is the mean over the trees, Spread their standard deviation.
	Share, Spread float64
}

// Variance is how the score's variance divides over the parameters.
type Variance struct {
	// Single has every parameter, and Pairs those of the parameters that the
	// forest split on most; each has the largest first. Together with what more
	// than two parameters do jointly, all shares sum to 1.
	Single, Pairs []Effect
}

// Variance divides the variance of the forest's prediction, over configurations
// drawn evenly from the space: functional ANOVA (Hutter, Hoos and Leyton-Brown,
// ICML 2014), computed exactly for each tree from its leaves.
//
// underflow is the variance below which its parts lose digits: squares of scores that
// differ by less than 1e-145 are no normal numbers.
const underflow = 1e-290

// A conditional parameter counts where it exists; elsewhere it does nothing.
func (f *Forest) Variance() Variance {
	var result Variance
	single := make([][]float64, len(f.axes))
	chosen := f.mostSplit()
	pairs := map[[2]int][]float64{}
	for _, one := range f.trees {
		parts := f.boxes(one)
		if !(parts.total > underflow) {
			continue
		}
		for p := range f.axes {
			single[p] = append(single[p], parts.single(p)/parts.total)
		}
		for i, p := range chosen {
			for _, q := range chosen[i+1:] {
				pair := [2]int{min(p, q), max(p, q)}
				share := parts.pair(pair[0], pair[1])/parts.total - single[p][len(single[p])-1] - single[q][len(single[q])-1]
				pairs[pair] = append(pairs[pair], max(0, share))
			}
		}
	}
	for p := range f.axes {
		result.Single = append(result.Single, effect(single[p], f.axes[p].dimension.Name, ""))
		for q := range f.axes {
			if shares := pairs[[2]int{p, q}]; shares != nil {
				result.Pairs = append(result.Pairs, effect(shares, f.axes[p].dimension.Name, f.axes[q].dimension.Name))
			}
		}
	}
	larger := func(a, b Effect) int { return cmp.Compare(b.Share, a.Share) }
	slices.SortStableFunc(result.Single, larger)
	slices.SortStableFunc(result.Pairs, larger)
	return result
}

// effect sums the trees' shares up.
func effect(shares []float64, parameter, other string) Effect {
	sum, square := 0.0, 0.0
	for _, share := range shares {
		sum += share
		square += share * share
	}
	n := float64(max(len(shares), 1))
	return Effect{Parameter: parameter, Other: other, Share: sum / n, Spread: math.Sqrt(max(0, square/n-sum/n*sum/n))}
}

// mostSplit returns the parameters whose splits took away most of the error.
func (f *Forest) mostSplit() []int {
	var list []int
	for d, gain := range f.gains {
		if gain > 0 {
			list = append(list, d)
		}
	}
	slices.SortStableFunc(list, func(a, b int) int { return cmp.Compare(f.gains[b], f.gains[a]) })
	return list[:min(len(list), pairParameters)]
}

// side is a box's extent along one parameter, if it is not the whole range.
type side struct {
	parameter int
	set       binSet
	weight    float64
}

// box is a leaf: a part of the space with one prediction, less the tree's mean.
type box struct {
	sides  []side
	volume float64
	value  float64
}

// boxes are the leaves of one tree.
type boxes struct {
	axes  []axis
	list  []box
	mean  float64 // of the prediction over the space
	total float64 // the variance
}

// noVariance is the share of the mean square below which a variance is the
// rounding of sums.
const noVariance = 1e-20

func (f *Forest) boxes(one tree) boxes {
	b := boxes{axes: f.axes}
	b.collect(one, 0, box{volume: 1})
	square := 0.0
	for _, leaf := range b.list {
		b.mean += leaf.volume * leaf.value
		square += leaf.volume * leaf.value * leaf.value
	}
	for i := range b.list {
		b.list[i].value -= b.mean
		b.total += b.list[i].volume * b.list[i].value * b.list[i].value
	}
	if b.total <= noVariance*square {
		b.total = 0
	}
	return b
}

// collect adds the leaves below a node whose box is given.
func (b *boxes) collect(one tree, at int32, here box) {
	n := one[at]
	if n.left == 0 {
		here.value = n.value
		b.list = append(b.list, here)
		return
	}
	if part, ok := b.part(here, int(n.parameter), n.set); ok {
		b.collect(one, n.left, part)
	}
	if part, ok := b.part(here, int(n.parameter), ^n.set); ok {
		b.collect(one, n.right, part)
	}
}

// part is the part of a box where the parameter is in the set, if there is any.
func (b *boxes) part(of box, parameter int, set binSet) (box, bool) {
	whole, before := b.axes[parameter].all(), 1.0
	at := slices.IndexFunc(of.sides, func(s side) bool { return s.parameter == parameter })
	if at >= 0 {
		whole, before = of.sides[at].set, of.sides[at].weight
	}
	narrow := side{parameter: parameter, set: whole & set}
	narrow.weight = b.axes[parameter].weight(narrow.set)
	if narrow.weight <= 0 {
		return box{}, false
	}
	of.sides = slices.Clone(of.sides)
	if at >= 0 {
		of.sides[at] = narrow
	} else {
		of.sides = append(of.sides, narrow)
	}
	of.volume *= narrow.weight / before
	return of, true
}

// side is the box's side along a parameter, the whole range if it has none.
func (b *boxes) side(of *box, parameter int) (s side, limited bool) {
	for _, s := range of.sides {
		if s.parameter == parameter {
			return s, true
		}
	}
	return side{parameter: parameter, set: b.axes[parameter].all(), weight: 1}, false
}

// marginal is the mean prediction in each bin of a parameter, less the mean over
// the space.
func (b *boxes) marginal(parameter int) []float64 {
	marginal, everywhere := [maxBins]float64{}, 0.0
	for i := range b.list {
		leaf := &b.list[i]
		s, limited := b.side(leaf, parameter)
		mass := leaf.value * leaf.volume / s.weight
		if !limited {
			everywhere += mass
			continue
		}
		for rest := s.set; rest != 0; rest &= rest - 1 {
			marginal[bits.TrailingZeros64(rest)] += mass
		}
	}
	means := make([]float64, len(b.axes[parameter].weights))
	for bin := range means {
		means[bin] = marginal[bin] + everywhere
	}
	return means
}

// single is the variance of the mean prediction at each value of a parameter.
func (b *boxes) single(parameter int) float64 {
	variance, marginal := 0.0, b.marginal(parameter)
	for bin, weight := range b.axes[parameter].weights {
		variance += weight * marginal[bin] * marginal[bin]
	}
	return variance
}

// pair is the variance of the mean prediction at each pair of values.
func (b *boxes) pair(p, q int) float64 {
	var marginal [maxBins][maxBins]float64
	for i := range b.list {
		leaf := &b.list[i]
		first, _ := b.side(leaf, p)
		second, _ := b.side(leaf, q)
		mass := leaf.value * leaf.volume / (first.weight * second.weight)
		for rows := first.set; rows != 0; rows &= rows - 1 {
			row := &marginal[bits.TrailingZeros64(rows)]
			for columns := second.set; columns != 0; columns &= columns - 1 {
				row[bits.TrailingZeros64(columns)] += mass
			}
		}
	}
	variance := 0.0
	for i, rows := range b.axes[p].weights {
		for j, columns := range b.axes[q].weights {
			variance += rows * columns * marginal[i][j] * marginal[i][j]
		}
	}
	return variance
}
