package backend

import (
	"math"
	"math/rand/v2"
)

// The forest's size.
const (
	trees     = 40
	leastLeaf = 2
	// sampled is the most runs that one tree is grown from.
	sampled = 2000
)

// forest is an ensemble of extremely randomized trees (Geurts and others 2006)
// on bootstrap samples, all targets in the leaves of the same trees. How far
// its predictions are off comes from runs that a tree did not see.
type forest struct {
	shape    Shape
	memory   memory
	seen     int
	fitted   int
	stale    bool
	scale    scale
	roots    []*node
	residual []float64 // mean squared out-of-bag error, by target
}

// node is a split or, without children, a leaf.
type node struct {
	column      int
	cut         float64
	left, right *node
	mean        []float64
}

func (f *forest) Fit(rows []Row) {
	f.memory.fill(rows)
	f.seen, f.fitted, f.stale = len(rows), 0, len(rows) > 0
}

func (f *forest) Learn(row Row) {
	f.memory.add(row)
	f.seen++
	if due(f.fitted, f.seen) {
		f.stale = true
	}
}

func (f *forest) Predict(features []float64) (mean, deviation []float64) {
	if f.stale {
		f.refit()
	}
	if len(f.roots) == 0 {
		return nothing(len(f.shape.Logarithmic))
	}
	x := f.scale.input(features)
	mean, deviation = make([]float64, len(f.residual)), make([]float64, len(f.residual))
	for _, root := range f.roots {
		for o, value := range root.leaf(x).mean {
			mean[o] += value / trees
			deviation[o] += value * value / trees
		}
	}
	for o := range mean {
		spread := max(0, deviation[o]-mean[o]*mean[o])
		deviation[o] = math.Sqrt(spread + f.residual[o])
	}
	return f.scale.output(mean, deviation)
}

func (n *node) leaf(x []float64) *node {
	for n.left != nil {
		if x[n.column] < n.cut {
			n = n.left
		} else {
			n = n.right
		}
	}
	return n
}

// grower grows the trees of one fit.
type grower struct {
	inputs, targets [][]float64
	random          *rand.Rand
}

func (f *forest) refit() {
	f.fitted, f.stale = f.seen, false
	rows := f.memory.rows
	f.scale = newScale(rows, f.shape)
	g := grower{random: rand.New(rand.NewPCG(f.shape.Seed, uint64(f.seen)))}
	for _, row := range rows {
		g.inputs = append(g.inputs, f.scale.input(row.Features))
		g.targets = append(g.targets, f.scale.target(row.Targets))
	}
	f.roots = nil
	outside := make([][]float64, len(rows)) // sums of predictions of trees that did not see the run
	votes := make([]float64, len(rows))
	for range trees {
		sample, inside := make([]int, min(len(rows), sampled)), make([]bool, len(rows))
		for i := range sample {
			sample[i] = g.random.IntN(len(rows))
			inside[sample[i]] = true
		}
		root := g.grow(sample, make([]float64, len(f.shape.Logarithmic)))
		f.roots = append(f.roots, root)
		for i := range rows {
			if inside[i] {
				continue
			}
			if outside[i] == nil {
				outside[i] = make([]float64, len(f.shape.Logarithmic))
			}
			for o, value := range root.leaf(g.inputs[i]).mean {
				outside[i][o] += value
			}
			votes[i]++
		}
	}
	f.residual = make([]float64, len(f.shape.Logarithmic))
	for o := range f.residual {
		// As for ridge, one run that is as far off as all targets are is added.
		sum, count := 1.0, 1.0
		for i := range rows {
			if votes[i] > 0 && !math.IsNaN(g.targets[i][o]) {
				left := outside[i][o]/votes[i] - g.targets[i][o]
				sum += left * left
				count++
			}
		}
		f.residual[o] = sum / count
	}
}

// grow makes the tree of a sample; above is what the parent predicts, for
// targets that nothing in the sample has.
func (g *grower) grow(sample []int, above []float64) *node {
	n := &node{mean: g.mean(sample, above)}
	if len(sample) < 2*leastLeaf {
		return n
	}
	best := 1e-12
	for column := range g.inputs[0] {
		low, high := math.Inf(1), math.Inf(-1)
		for _, i := range sample {
			low, high = min(low, g.inputs[i][column]), max(high, g.inputs[i][column])
		}
		if high-low < 1e-12 {
			continue
		}
		cut := low + (high-low)*g.random.Float64()
		if gain := g.gain(sample, column, cut); gain > best {
			best, n.column, n.cut = gain, column, cut
		}
	}
	if best == 1e-12 {
		return n
	}
	var left, right []int
	for _, i := range sample {
		if g.inputs[i][n.column] < n.cut {
			left = append(left, i)
		} else {
			right = append(right, i)
		}
	}
	n.left, n.right = g.grow(left, n.mean), g.grow(right, n.mean)
	return n
}

func (g *grower) mean(sample []int, above []float64) []float64 {
	mean, count := make([]float64, len(above)), make([]float64, len(above))
	for _, i := range sample {
		for o, value := range g.targets[i] {
			if !math.IsNaN(value) {
				mean[o] += value
				count[o]++
			}
		}
	}
	for o := range mean {
		if count[o] == 0 {
			mean[o] = above[o]
		} else {
			mean[o] /= count[o]
		}
	}
	return mean
}

// gain is by how much a cut lowers the squared error, summed over the targets;
// 0 when a side would be too small for a leaf.
func (g *grower) gain(sample []int, column int, cut float64) float64 {
	left := 0
	for _, i := range sample {
		if g.inputs[i][column] < cut {
			left++
		}
	}
	if left < leastLeaf || len(sample)-left < leastLeaf {
		return 0
	}
	total := 0.0
	for o := range g.targets[0] {
		var count, sum [2]float64
		for _, i := range sample {
			value := g.targets[i][o]
			if math.IsNaN(value) {
				continue
			}
			side := 0
			if g.inputs[i][column] >= cut {
				side = 1
			}
			count[side]++
			sum[side] += value
		}
		if count[0] > 0 && count[1] > 0 {
			difference := sum[0]/count[0] - sum[1]/count[1]
			total += count[0] * count[1] / (count[0] + count[1]) * difference * difference
		}
	}
	return total
}
