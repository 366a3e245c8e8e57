package forecast

import (
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/nn"
)

// convolutional is an encoder of convolutions over time, each of which halves
// the sequence; the context is what is left at its end.
type convolutional struct {
	channels int
	layers   []*nn.Tensor // out × (kernel × in + 1)
}

const (
	kernel = 5
	depth  = 3
	// kept is how many of the last steps are the context.
	kept = 4
)

func newConvolutional(channels int, random *rand.Rand) *convolutional {
	c := &convolutional{channels: channels}
	in := 1
	for range depth {
		c.layers = append(c.layers, nn.NewTensor(channels, kernel*in+1, random))
		in = channels
	}
	return c
}

func (c *convolutional) widths() []int       { return slices.Repeat([]int{c.channels}, kept) }
func (c *convolutional) parts() []*nn.Tensor { return c.layers }

// patch is what an output sees: kernel steps that end at step 2·to+1, zeros
// before the beginning, and 1.
func patch(input []float64, in, to int, into []float64) {
	clear(into)
	for k := range kernel {
		if from := 2*to + 1 - (kernel - 1) + k; from >= 0 {
			copy(into[k*in:(k+1)*in], input[from*in:])
		}
	}
	into[kernel*in] = 1
}

func (c *convolutional) forward(sequence []float64) []float64 {
	input, in, steps := sequence, 1, len(sequence)
	for _, layer := range c.layers {
		steps /= 2
		output, seen := make([]float64, steps*c.channels), make([]float64, kernel*in+1)
		for to := range steps {
			patch(input, in, to, seen)
			layer.Apply(seen, output[to*c.channels:(to+1)*c.channels])
		}
		for i, x := range output {
			output[i] = max(x, 0)
		}
		input, in = output, c.channels
	}
	return input[(steps-kept)*c.channels:]
}

func (c *convolutional) build(g *nn.Graph, sequence []*nn.Node) []*nn.Node {
	var layers []nn.Layer
	for i, layer := range c.layers {
		in := c.channels
		if i == 0 {
			in = 1
		}
		layers = append(layers, g.Dense(layer, kernel, slices.Repeat([]int{in}, kernel)...))
	}
	made := map[[2]int]*nn.Node{}
	var output func(layer, to int) *nn.Node
	output = func(layer, to int) *nn.Node {
		if layer < 0 {
			return sequence[to]
		}
		if made[[2]int{layer, to}] == nil {
			var seen []*nn.Node
			for from := 2*to + 2 - kernel; from < 2*to+2; from++ {
				seen = append(seen, output(layer-1, from))
			}
			made[[2]int{layer, to}] = g.Rectify(g.Apply(layers[layer], seen...))
		}
		return made[[2]int{layer, to}]
	}
	var context []*nn.Node
	for to := len(sequence)>>depth - kept; to < len(sequence)>>depth; to++ {
		context = append(context, output(depth-1, to)) // none sees what is before the sequence
	}
	return context
}
