package utilization

import (
	"cmp"
	"fmt"
	"math/rand/v2"
	"slices"
)

// Tree is a regression tree (Breiman and others, 1984), node by node: the first
// is the root.
type Tree []Node

// Node splits, or is a leaf.
type Node struct {
	// Below and Beyond are the places of the nodes for what is below the Cut in
	// the Column and for the rest; both 0 for a leaf, which says Value.
	Column int     `json:"c,omitempty"`
	Cut    float64 `json:"t,omitempty"`
	Below  int     `json:"l,omitempty"`
	Beyond int     `json:"r,omitempty"`
	Value  float64 `json:"v"`
}

func (t Tree) predict(x []float64) float64 {
	at := 0
	for t[at].Below != 0 {
		if x[t[at].Column] < t[at].Cut {
			at = t[at].Below
		} else {
			at = t[at].Beyond
		}
	}
	return t[at].Value
}

// check holds that every path ends: children lie behind their parents.
func (t Tree) check() error {
	if len(t) == 0 {
		return fmt.Errorf("it has no nodes")
	}
	for i, node := range t {
		if node.Below == 0 && node.Beyond == 0 {
			continue
		}
		if node.Below <= i || node.Beyond <= i || node.Below >= len(t) || node.Beyond >= len(t) || node.Column < 0 || node.Column >= width {
			return fmt.Errorf("node %d of %d leads to %d and %d by column %d of %d", i, len(t), node.Below, node.Beyond, node.Column, width)
		}
	}
	return nil
}

// grower grows the trees of one fit.
type grower struct {
	inputs   [][]float64
	targets  []float64
	settings Settings
	random   *rand.Rand
	tried    int // columns at each split
	gains    []float64
}

func (g *grower) tree(sample []int) Tree {
	var t Tree
	g.grow(&t, sample, 0)
	return t
}

// grow appends the node of a sample and what is below it.
func (g *grower) grow(t *Tree, sample []int, depth int) (at int) {
	at = len(*t)
	mean := 0.0
	for _, i := range sample {
		mean += g.targets[i] / float64(len(sample))
	}
	*t = append(*t, Node{Value: mean})
	if depth >= g.settings.Depth || len(sample) < 2*g.settings.Leaf {
		return at
	}
	best := split{}
	for _, column := range g.random.Perm(width)[:g.tried] {
		if one := g.best(sample, column); one.gain > best.gain {
			best = one
		}
	}
	if best.gain <= 0 {
		return at
	}
	g.gains[best.column] += best.gain
	var below, beyond []int
	for _, i := range sample {
		if g.inputs[i][best.column] < best.cut {
			below = append(below, i)
		} else {
			beyond = append(beyond, i)
		}
	}
	left := g.grow(t, below, depth+1)
	right := g.grow(t, beyond, depth+1)
	node := &(*t)[at]
	node.Column, node.Cut, node.Below, node.Beyond = best.column, best.cut, left, right
	return at
}

type split struct {
	column    int
	cut, gain float64
}

// noise is what rounding makes of a gain of nothing.
const noise = 1e-12

// best is the cut of a column that lowers the squared error most.
func (g *grower) best(sample []int, column int) split {
	sorted := slices.Clone(sample)
	slices.SortStableFunc(sorted, func(a, b int) int { return cmp.Compare(g.inputs[a][column], g.inputs[b][column]) })
	total := 0.0
	for _, i := range sorted {
		total += g.targets[i]
	}
	found := split{column: column, gain: 0}
	sum, n := 0.0, float64(len(sorted))
	for k := range len(sorted) - 1 {
		sum += g.targets[sorted[k]]
		here, next := g.inputs[sorted[k]][column], g.inputs[sorted[k+1]][column]
		left := float64(k + 1)
		if here == next || k+1 < g.settings.Leaf || len(sorted)-k-1 < g.settings.Leaf {
			continue
		}
		difference := sum/left - (total-sum)/(n-left)
		if gain := left * (n - left) / n * difference * difference; gain > found.gain+noise {
			found.gain, found.cut = gain, here+(next-here)/2
			if found.cut <= here { // rounding
				found.cut = next
			}
		}
	}
	return found
}
