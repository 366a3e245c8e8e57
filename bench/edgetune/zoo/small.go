package zoo

import (
	"fmt"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// NASBench201 is the network of Dong and Yang (2020) with this cell, as the
// benchmark writes cells: |nor_conv_3x3~0|+|none~0|skip_connect~1|+|...|. An
// engine that prunes leaves out what the result does not depend on; one that does
// not computes every edge, the empty ones as a multiplication by zero.
func NASBench201(cell string, kind graph.Type, pruned bool) (graph.Graph, error) {
	nodes, err := parseCell(cell)
	if err != nil {
		return graph.Graph{}, err
	}
	l := start("nasbench201 "+cell, kind, shape{32, 32, 3})
	l.conv(16, 3, 1)
	for i := range 3 {
		width := int64(16) << i
		if i > 0 {
			from := l.here()
			l.pool("AveragePool", square(2, 2))
			l.conv(width, 1, 1)
			shortcut := l.here()
			l.back(from)
			l.conv(width, 3, 2)
			l.conv(width, 3, 1)
			l.add(shortcut)
		}
		for range 5 {
			l.cell(nodes, pruned)
		}
	}
	return classify(l, 10), nil
}

// edge is what one node of a cell does with an earlier one.
type edge struct {
	operation string
	from      int
}

func parseCell(cell string) ([][]edge, error) {
	var nodes [][]edge
	for i, text := range strings.Split(cell, "+") {
		var edges []edge
		for _, part := range strings.Split(strings.Trim(text, "|"), "|") {
			operation, from, found := strings.Cut(part, "~")
			if !found || from != fmt.Sprint(len(edges)) {
				return nil, fmt.Errorf("cell %q: %q is not operation~node", cell, part)
			}
			switch operation {
			case "none", "skip_connect", "nor_conv_1x1", "nor_conv_3x3", "avg_pool_3x3":
			default:
				return nil, fmt.Errorf("cell %q: operation %q is not of NAS-Bench-201", cell, operation)
			}
			edges = append(edges, edge{operation, len(edges)})
		}
		if len(edges) != i+1 {
			return nil, fmt.Errorf("cell %q: node %d has %d edges, not %d", cell, i+1, len(edges), i+1)
		}
		nodes = append(nodes, edges)
	}
	if len(nodes) != 3 {
		return nil, fmt.Errorf("cell %q has %d nodes, not 3", cell, len(nodes))
	}
	return nodes, nil
}

// cell computes each node as the sum of what its edges bring.
func (l *layers) cell(nodes [][]edge, pruned bool) {
	points := []point{l.here()}
	for i, edges := range nodes {
		var sum *point
		for _, e := range edges {
			if pruned && (e.operation == "none" || !needed(nodes, i+1)) {
				continue
			}
			l.back(points[e.from])
			switch e.operation {
			case "nor_conv_1x1":
				l.conv(l.channels(), 1, 1)
			case "nor_conv_3x3":
				l.conv(l.channels(), 3, 1)
			case "avg_pool_3x3":
				l.pool("AveragePool", square(3, 1))
			case "none":
				l.each("Mul", graph.Elementwise, 1)
			}
			if sum != nil {
				l.add(*sum)
			}
			here := l.here()
			sum = &here
		}
		if sum == nil {
			sum = &points[0]
		}
		points = append(points, *sum)
	}
	l.back(points[3])
}

// needed says whether the end of a cell depends on a node.
func needed(nodes [][]edge, node int) bool {
	if node == len(nodes) {
		return true
	}
	for later := node + 1; later <= len(nodes); later++ {
		if nodes[later-1][node].operation != "none" && needed(nodes, later) {
			return true
		}
	}
	return false
}

// Tiny is a model of MLPerf Tiny (Banbury et al. 2021) by its task: ad, ic, kws
// or vww.
func Tiny(task string, kind graph.Type) (graph.Graph, error) {
	switch task {
	case "ad": // an autoencoder of spectra
		l := start("tiny-ad", kind, shape{1, 1, 640})
		for _, width := range []int64{128, 128, 128, 128, 8, 128, 128, 128, 128, 640} {
			l.dense(width)
		}
		return l.done(), nil
	case "ic": // a residual network of eight layers
		l := start("tiny-ic", kind, shape{32, 32, 3})
		l.conv(16, 3, 1)
		for i := range 3 {
			width, stride := int64(16)<<i, int64(1)
			from := l.here()
			shortcut := from
			if i > 0 {
				stride = 2
				l.conv(width, 1, 2)
				shortcut = l.here()
				l.back(from)
			}
			l.conv(width, 3, stride)
			l.conv(width, 3, 1)
			l.add(shortcut)
		}
		return classify(l, 10), nil
	case "kws": // separable convolutions over a spectrogram
		l := start("tiny-kws", kind, shape{49, 10, 1})
		l.convolve(64, window{rows: 10, columns: 4, stride: 2})
		for range 4 {
			l.depthwise(square(3, 1))
			l.conv(64, 1, 1)
		}
		return classify(l, 12), nil
	case "vww":
		l := start("tiny-vww", kind, picture(96))
		l.conv(8, 3, 2)
		for _, block := range [][2]int64{{16, 1}, {32, 2}, {32, 1}, {64, 2}, {64, 1}, {128, 2}, {128, 1}, {128, 1}, {128, 1}, {128, 1}, {128, 1}, {256, 2}, {256, 1}} {
			l.depthwise(square(3, block[1]))
			l.conv(block[0], 1, 1)
		}
		return classify(l, 2), nil
	}
	return graph.Graph{}, fmt.Errorf("MLPerf Tiny has no task %q: ad, ic, kws or vww", task)
}
