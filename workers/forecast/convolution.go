package forecast

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/nn"
)

// convolutional is an encoder of convolutions over time, each of which halves
// the sequence; the context is what is left at its end.
type convolutional struct {
	channels int
	layers   []*nn.Tensor // out × (kernel × in + 1)
	// of each layer: its input, with the channels of a step beside each other,
	// and its output before what is negative is cut off.
	inputs, outputs [][]float64
	context         []float64
	steps           int
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

func (c *convolutional) width() int          { return kept * c.channels }
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
	c.inputs, c.outputs = c.inputs[:0], c.outputs[:0]
	input, in, steps := sequence, 1, len(sequence)
	for _, layer := range c.layers {
		steps /= 2
		output, seen := make([]float64, steps*c.channels), make([]float64, kernel*in+1)
		for to := range steps {
			patch(input, in, to, seen)
			layer.Apply(seen, output[to*c.channels:(to+1)*c.channels])
		}
		c.inputs, c.outputs = append(c.inputs, input), append(c.outputs, output)
		cut := make([]float64, len(output))
		for i, x := range output {
			cut[i] = max(x, 0)
		}
		input, in = cut, c.channels
	}
	c.steps = steps
	c.context = append(c.context[:0], input[(steps-kept)*c.channels:]...)
	return c.context
}

func (c *convolutional) backward(blame []float64) {
	ofOutput := make([]float64, c.steps*c.channels)
	copy(ofOutput[(c.steps-kept)*c.channels:], blame)
	for i := len(c.layers) - 1; i >= 0; i-- {
		layer, input, in := c.layers[i], c.inputs[i], c.channels
		if i == 0 {
			in = 1
		}
		for j, x := range c.outputs[i] {
			if x <= 0 {
				ofOutput[j] = 0
			}
		}
		ofInput, seen, through := make([]float64, len(input)), make([]float64, kernel*in+1), make([]float64, kernel*in+1)
		for to := range len(ofOutput) / c.channels {
			patch(input, in, to, seen)
			clear(through)
			layer.Learn(seen, ofOutput[to*c.channels:(to+1)*c.channels], through)
			for k := range kernel {
				if from := 2*to + 1 - (kernel - 1) + k; from >= 0 {
					for j := range in {
						ofInput[from*in+j] += through[k*in+j]
					}
				}
			}
		}
		ofOutput = ofInput
	}
}
