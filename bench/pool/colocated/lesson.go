package colocated

import (
	"github.com/tandem-tune/tandem/internal/nn"
)

// lesson is the graph that a network learns from, of a batch of views. It has as many
// periods as the longest view; those that a view lacks weigh nothing.
type lesson struct {
	graph            *nn.Graph
	encoder, decoder [][]float64 // the inputs of each period
	// of each period of the decoder: what the network corrects, what was seen, and
	// what an error counts
	alone, shared, speed, busy, ofSpeed, ofBusy [][]float64
}

// weightOfBusy is what an error of utilization counts beside one of speed.
const weightOfBusy = 0.5

// lesson builds the graph of the loss: the mean squared error of the speeds and
// utilizations, told where the training really was.
func (n *Network) lesson(batch int, views []view) (*lesson, error) {
	g := nn.NewGraph(batch)
	l := &lesson{graph: g}
	steps := 1
	for _, one := range views {
		steps = max(steps, len(one.inputs))
	}
	input := func(into *[][]float64, columns int) *nn.Node {
		node, values := g.Input(columns)
		*into = append(*into, values)
		return node
	}
	var seen []*nn.Node
	for range Periods {
		seen = append(seen, input(&l.encoder, inputs))
	}
	states := g.GRU(n.encoder, seen, nil)
	seen = nil
	for range steps {
		seen = append(seen, input(&l.decoder, inputs))
	}
	hidden := n.last.Columns - 1
	speedOf, busyOf := g.Dense(row(n.last, 0), 1, hidden), g.Dense(row(n.last, 1), 1, hidden)
	far := make([]float64, batch)
	for i := range far {
		far[i] = farthest
	}
	most, loss := g.Constant(batch, far), (*nn.Node)(nil)
	for _, state := range g.GRU(n.decoder, seen, states[len(states)-1]) {
		speed := g.Exp(g.Add(input(&l.shared, 1), g.Tanh(g.Apply(speedOf, state))))
		busy := g.Add(g.Scale(input(&l.alone, 1), speed), g.Scale(most, g.Tanh(g.Apply(busyOf, state))))
		offSpeed, offBusy := g.Subtract(speed, input(&l.speed, 1)), g.Subtract(busy, input(&l.busy, 1))
		part := g.Add(g.Scale(input(&l.ofSpeed, 1), g.Scale(offSpeed, offSpeed)), g.Scale(input(&l.ofBusy, 1), g.Scale(offBusy, offBusy)))
		if loss == nil {
			loss = part
		} else {
			loss = g.Add(loss, part)
		}
	}
	return l, g.Compile(g.Mean(loss))
}

// fill sets the batch; places that are left over weigh nothing.
func (l *lesson) fill(views []view) {
	batch := len(l.speed[0])
	for step := range l.decoder {
		clear(l.ofSpeed[step])
		clear(l.ofBusy[step])
	}
	for i, v := range views {
		for step := range Periods {
			alone(v.own, v.other, step, l.encoder[step][i*inputs:(i+1)*inputs])
		}
		for step, x := range v.inputs {
			copy(l.decoder[step][i*inputs:], x)
			l.alone[step][i], l.shared[step][i] = x[0], x[8]
			l.speed[step][i], l.busy[step][i] = v.speed[step], v.busy[step]
			// The loss is a mean over the batch: its places and views may differ.
			l.ofSpeed[step][i] = float64(batch) / float64(len(views)*len(v.inputs))
			l.ofBusy[step][i] = weightOfBusy * l.ofSpeed[step][i]
		}
	}
}

// row is one row of a tensor, as a tensor that shares its memory.
func row(t *nn.Tensor, at int) *nn.Tensor {
	from, to := at*t.Columns, (at+1)*t.Columns
	return &nn.Tensor{Rows: 1, Columns: t.Columns, Value: t.Value[from:to], Gradient: t.Gradient[from:to]}
}
