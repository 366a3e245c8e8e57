package graphtest

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// Square is a window of two dimensions with the same kernel, stride and padding
// in both and on all sides.
func Square(kernel, stride, padding int64) graph.Window {
	pad := []int64{padding, padding}
	return graph.Window{Kernel: []int64{kernel, kernel}, Stride: []int64{stride, stride}, Begin: pad, End: pad}
}

// SquareSame is a window of two dimensions that pads as TensorFlow's "SAME".
func SquareSame(kernel, stride int64) graph.Window {
	return graph.Window{Kernel: []int64{kernel, kernel}, Stride: []int64{stride, stride}, Same: true}
}

// Stored is an operand that the model brings along.
func Stored(name string, t graph.Type, shape ...int64) graph.Operand {
	return graph.Operand{Tensor: graph.Tensor{Name: name, Type: t, Shape: shape}, Stored: true}
}

// Filter is a convolution as [Builder.Convolution] adds it.
type Filter struct {
	graph.Window
	Out    int64 // channels of the output
	Groups int64 // 0 is 1
	// Unbiased leaves the bias out, as where a batch normalization follows.
	Unbiased bool
}

// Convolution adds a convolution with its weights, of the input's type.
func (b *Builder) Convolution(x graph.Tensor, filter Filter) graph.Tensor {
	if len(x.Shape) < 3 {
		return b.fault("a convolution needs [samples, channels, sizes...], not %v", x.Shape)
	}
	groups := max(filter.Groups, 1)
	kernels := Stored("", x.Type, slices.Concat([]int64{filter.Out, x.Shape[1] / groups}, filter.Kernel)...)
	operands := append(graph.Computed(x), kernels)
	if !filter.Unbiased {
		operands = append(operands, Stored("", x.Type, filter.Out))
	}
	return b.one(graph.NewConvolution(operands, filter.Window, groups))
}

// Depthwise adds a convolution with one kernel for each channel.
func (b *Builder) Depthwise(x graph.Tensor, window graph.Window, unbiased bool) graph.Tensor {
	if len(x.Shape) < 3 {
		return b.fault("a convolution needs [samples, channels, sizes...], not %v", x.Shape)
	}
	return b.Convolution(x, Filter{Window: window, Out: x.Shape[1], Groups: x.Shape[1], Unbiased: unbiased})
}

// TransposedConvolution adds a transposed convolution with a bias.
func (b *Builder) TransposedConvolution(x graph.Tensor, window graph.Window, out int64) graph.Tensor {
	if len(x.Shape) < 3 {
		return b.fault("a convolution needs [samples, channels, sizes...], not %v", x.Shape)
	}
	kernels := Stored("", x.Type, slices.Concat([]int64{x.Shape[1], out}, window.Kernel)...)
	return b.one(graph.NewTransposedConvolution(append(graph.Computed(x), kernels, Stored("", x.Type, out)), window, graph.Transposing{Groups: 1}))
}

// Linear adds a fully connected layer with a bias on the last dimension: a Gemm
// for a matrix, a matrix product and a sum for more dimensions.
func (b *Builder) Linear(x graph.Tensor, out int64) graph.Tensor {
	if len(x.Shape) < 2 {
		return b.fault("a linear layer needs [samples, ..., features], not %v", x.Shape)
	}
	in := x.Shape[len(x.Shape)-1]
	if len(x.Shape) == 2 {
		return b.one(graph.NewGemm(append(graph.Computed(x), Stored("", x.Type, out, in), Stored("", x.Type, out)), false, true))
	}
	y := b.one(graph.NewMatrixProduct(append(graph.Computed(x), Stored("", x.Type, in, out))))
	return b.one(graph.NewPointwise("Add", append(graph.Computed(y), Stored("", x.Type, out))))
}

// Product adds a matrix product of two computed tensors.
func (b *Builder) Product(x, y graph.Tensor) graph.Tensor {
	return b.one(graph.NewMatrixProduct(graph.Computed(x, y)))
}

// BatchNormalization adds one with learned scale and shift. A model that is
// deployed mostly has none: they are folded into the convolutions before.
func (b *Builder) BatchNormalization(x graph.Tensor) graph.Tensor {
	if len(x.Shape) < 2 {
		return b.fault("a batch normalization needs [samples, channels, ...], not %v", x.Shape)
	}
	operands := graph.Computed(x)
	for i := range 4 {
		value := Stored("", x.Type, x.Shape[1])
		value.Auxiliary = i >= 2 // mean and variance
		operands = append(operands, value)
	}
	return b.one(graph.NewPointwise("BatchNormalization", operands))
}

// LayerNormalization adds one over the last dimension with scale and shift.
func (b *Builder) LayerNormalization(x graph.Tensor) graph.Tensor {
	if len(x.Shape) < 1 {
		return b.fault("a layer normalization needs a dimension")
	}
	size := x.Shape[len(x.Shape)-1]
	return b.one(graph.NewPointwise("LayerNormalization", append(graph.Computed(x), Stored("", x.Type, size), Stored("", x.Type, size))))
}

// Pointwise adds any operator that works element by element on computed
// tensors: "Relu", "HardSwish", "Softmax", "Add", "Mul".
func (b *Builder) Pointwise(kind string, tensors ...graph.Tensor) graph.Tensor {
	return b.one(graph.NewPointwise(kind, graph.Computed(tensors...)))
}

// Relu adds an activation.
func (b *Builder) Relu(x graph.Tensor) graph.Tensor { return b.Pointwise("Relu", x) }

// Sum adds the elements of tensors, as a residual connection does.
func (b *Builder) Sum(x, y graph.Tensor) graph.Tensor { return b.Pointwise("Add", x, y) }

// MaxPool adds a pooling by the maximum.
func (b *Builder) MaxPool(x graph.Tensor, window graph.Window) graph.Tensor {
	return b.one(graph.NewPooling("MaxPool", x, window))
}

// AveragePool adds a pooling by the mean.
func (b *Builder) AveragePool(x graph.Tensor, window graph.Window) graph.Tensor {
	return b.one(graph.NewPooling("AveragePool", x, window))
}

// GlobalAveragePool reduces each channel to its mean.
func (b *Builder) GlobalAveragePool(x graph.Tensor) graph.Tensor {
	return b.one(graph.NewGlobalPooling("GlobalAveragePool", x))
}

// Flatten makes a matrix of a row for each sample.
func (b *Builder) Flatten(x graph.Tensor) graph.Tensor {
	if len(x.Shape) == 0 {
		return b.fault("a number has nothing to flatten")
	}
	op, output := graph.NewView("Flatten", graph.Operand{Tensor: x}, []int64{x.Shape[0], graph.Product(x.Shape[1:]...)})
	return b.one(op, output, nil)
}

// Reshape shows the elements with another shape.
func (b *Builder) Reshape(x graph.Tensor, shape ...int64) graph.Tensor {
	if graph.Product(shape...) != x.Elements() {
		return b.fault("shape %v does not have the %d elements of %v", shape, x.Elements(), x.Shape)
	}
	op, output := graph.NewView("Reshape", graph.Operand{Tensor: x}, shape)
	return b.one(op, output, nil)
}

// Transpose reorders the dimensions.
func (b *Builder) Transpose(x graph.Tensor, order ...int) graph.Tensor {
	op, output, err := graph.NewTransposition(graph.Operand{Tensor: x}, order)
	return b.one(op, output, err)
}

// Concat joins tensors along a dimension.
func (b *Builder) Concat(axis int, tensors ...graph.Tensor) graph.Tensor {
	op, output, err := graph.NewConcatenation(graph.Computed(tensors...), axis)
	return b.one(op, output, err)
}

// Embedding looks rows of a table up, one for each element of x.
func (b *Builder) Embedding(x graph.Tensor, t graph.Type, rows, width int64) graph.Tensor {
	output := graph.Tensor{Type: t, Shape: append(slices.Clone(x.Shape), width), Batched: x.Batched}
	return b.one(graph.NewLookUp([]graph.Operand{Stored("", t, rows, width), {Tensor: x}}, output), output, nil)
}

// Recurrent adds an "LSTM", "GRU" or "RNN" with one direction over
// [samples, steps, features] and returns all states, [samples, steps, 1, hidden],
// and the last one, [samples, 1, hidden].
func (b *Builder) Recurrent(kind string, x graph.Tensor, hidden int64) (states, last graph.Tensor) {
	gates := map[string]int64{"LSTM": 4, "GRU": 3, "RNN": 1}[kind]
	if len(x.Shape) != 3 || gates == 0 {
		return b.fault("%s needs [samples, steps, features], not %v", kind, x.Shape), graph.Tensor{}
	}
	rows := gates * hidden
	operands := append(graph.Computed(x), Stored("", x.Type, 1, rows, x.Shape[2]), Stored("", x.Type, 1, rows, hidden), Stored("", x.Type, 1, 2*rows))
	op, outputs, err := graph.NewRecurrent(kind, operands, graph.Recurring{Hidden: hidden, Directions: 1, BatchFirst: true})
	if err != nil || b.err != nil {
		return b.one(op, graph.Tensor{}, err), graph.Tensor{}
	}
	outputs = b.Add(op, outputs...)
	return outputs[0], outputs[1]
}
