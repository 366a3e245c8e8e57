package forecast

import "github.com/tandem-tune/tandem/internal/nn"

// lesson is the graph that a network learns from, of a batch of windows.
type lesson struct {
	network *Network
	graph   *nn.Graph
	// sequence has the batch for each minute of the window; extras are two for each
	// window, and truth its changes of the demand, one for each output.
	sequence      [][]float64
	extras, truth []float64
}

// lesson builds the graph of the loss of the quantiles (equation 2), in the mean over
// windows, minutes and quantiles.
func (n *Network) lesson(batch int) (*lesson, error) {
	g := nn.NewGraph(batch)
	l := &lesson{network: n, graph: g, sequence: make([][]float64, Lookback)}
	steps := make([]*nn.Node, Lookback)
	for t := range steps {
		steps[t], l.sequence[t] = g.Input(1)
	}
	var extra, truth *nn.Node
	extra, l.extras = g.Input(extras - 1)
	truth, l.truth = g.Input(n.last.Rows)
	context := g.GRU(n.encoder, steps, nil)[Lookback-1]
	middle := g.Dense(n.middle, 2, n.settings.Hidden, extras-1)
	last := g.Dense(n.last, 1, middleUnits)
	said := g.Apply(last, g.Tanh(g.Apply(middle, context, extra)))
	off := g.Subtract(n.quantiles(g, said, batch), truth)
	share := make([]float64, 0, batch*n.last.Rows)
	for range batch * Horizon {
		share = append(share, n.settings.Quantiles...)
	}
	return l, g.Compile(g.Mean(g.Subtract(g.Rectify(off), g.Scale(g.Constant(batch, share), off))))
}

// quantiles are those of [Network.unfold], of all minutes: the median and the sums of
// the distances from it.
func (n *Network) quantiles(g *nn.Graph, said *nn.Node, batch int) *nn.Node {
	width, all := len(n.settings.Quantiles), n.last.Rows
	medians, distances, sums := make([]float64, batch*all), make([]float64, batch*all), make([]float64, all*all)
	for i := range medians {
		if i%width == n.median {
			medians[i] = 1
		} else {
			distances[i] = 1
		}
	}
	for to := range all {
		at, minute := to%width, to-to%width
		sums[(minute+n.median)*all+to] = 1
		for i := n.median + 1; i <= at; i++ {
			sums[(minute+i)*all+to] = 1
		}
		for i := at; i < n.median; i++ {
			sums[(minute+i)*all+to] = -1
		}
	}
	parts := g.Add(g.Scale(said, g.Constant(batch, medians)), g.Scale(g.Softplus(said), g.Constant(batch, distances)))
	return g.Multiply(parts, g.Constant(all, sums))
}

// fill sets one window of the batch, with the demand of the minutes ahead after it.
func (l *lesson) fill(sample int, series []float64) {
	n := l.network
	window, ahead := series[:Lookback], series[Lookback:]
	sequence, level, restless := n.see(window, n.sequence[:0])
	n.sequence = sequence
	for t, x := range sequence {
		l.sequence[t][sample] = x
	}
	l.extras[2*sample], l.extras[2*sample+1] = level, restless
	width := len(n.settings.Quantiles)
	for minute, demand := range ahead {
		for i := range width {
			l.truth[(sample*Horizon+minute)*width+i] = (demand - window[Lookback-1]) / n.scale
		}
	}
}
