package graph

import (
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// NewConvolution is a convolution of any rank. Operands are the input
// [samples, channels, sizes...], the kernels [out, in/groups, sizes...] and
// perhaps a bias. The bias costs nothing of its own: a sum of n products and a
// bias has n additions.
func NewConvolution(operands []Operand, window Window, groups int64) (Operator, Tensor, error) {
	input, kernels, err := convolved(operands, &window)
	if err != nil {
		return Operator{}, Tensor{}, err
	}
	in, out, each := input.Shape[1], kernels.Shape[0], kernels.Shape[1]
	if groups < 1 || Product(each, groups) != in || out%groups != 0 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "kernels %v in %d groups do not fit an input of %d channels", kernels.Shape, groups, in)
	}
	sizes, err := window.Sizes(input.Shape[2:])
	if err != nil {
		return Operator{}, Tensor{}, err
	}
	output := result(operands, slices.Concat([]int64{input.Shape[0], out}, sizes))
	op := NewOperator("Conv", Convolution, operands, output)
	op.Operations = Product(2, output.Elements(), each, Product(window.Kernel...))
	op.Positions = Product(input.Shape[0], Product(sizes...))
	window.describe(&op, groups, in, out)
	if groups > 1 && groups == in {
		op.Class = Depthwise
	}
	return op, output, nil
}

// Transposing is what a transposed convolution has beside its window.
type Transposing struct {
	Groups int64
	// Extra is added at the end of each dimension ("output_padding").
	Extra []int64
	// Sizes are those of the output; nil where they follow from the window.
	Sizes []int64
}

// NewTransposedConvolution has operands as [NewConvolution], but kernels
// [in, out/groups, sizes...]: each element of the input is multiplied with them.
func NewTransposedConvolution(operands []Operand, window Window, settings Transposing) (Operator, Tensor, error) {
	input, kernels, err := convolved(operands, &window)
	if err != nil {
		return Operator{}, Tensor{}, err
	}
	in, each, groups := input.Shape[1], kernels.Shape[1], settings.Groups
	if kernels.Shape[0] != in || groups < 1 || in%groups != 0 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "kernels %v in %d groups do not fit an input of %d channels", kernels.Shape, groups, in)
	}
	sizes := settings.Sizes
	if sizes == nil {
		if sizes, err = window.TransposedSizes(input.Shape[2:], settings.Extra); err != nil {
			return Operator{}, Tensor{}, err
		}
	}
	out := Product(each, groups)
	output := result(operands, slices.Concat([]int64{input.Shape[0], out}, sizes))
	op := NewOperator("ConvTranspose", Convolution, operands, output)
	op.Operations = Product(2, input.Elements(), each, Product(window.Kernel...))
	op.Positions = Product(input.Shape[0], Product(input.Shape[2:]...))
	window.describe(&op, groups, in, out)
	return op, output, nil
}

// convolved checks what both kinds need; a window without a kernel takes its
// size from the kernels.
func convolved(operands []Operand, window *Window) (input, kernels Operand, err error) {
	if len(operands) < 2 {
		return input, kernels, problem.New(problem.Invalid, "a convolution needs an input and kernels, not %d operands", len(operands))
	}
	input, kernels = operands[0], operands[1]
	if len(input.Shape) < 3 || len(kernels.Shape) != len(input.Shape) {
		return input, kernels, problem.New(problem.Invalid, "an input %v and kernels %v are not those of a convolution", input.Shape, kernels.Shape)
	}
	if len(window.Kernel) == 0 {
		window.Kernel = kernels.Shape[2:]
	}
	if !slices.Equal(window.Kernel, kernels.Shape[2:]) {
		return input, kernels, problem.New(problem.Invalid, "a window of %v is not that of kernels %v", window.Kernel, kernels.Shape)
	}
	return input, kernels, window.check(input.Shape[2:])
}

// describe fills the fields that only kernels have.
func (w Window) describe(op *Operator, groups, in, out int64) {
	op.Kernel, op.Stride, op.Groups = slices.Clone(w.Kernel), w.strides(), groups
	op.InChannels, op.OutChannels = in, out
	op.Attributes = w.attributes()
}

// NewPooling is a pooling of any rank: one operation for each element under the
// window (a comparison or an addition). Padding counts as if it were read.
func NewPooling(kind string, input Tensor, window Window) (Operator, Tensor, error) {
	if len(input.Shape) < 3 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "a pooling needs [samples, channels, sizes...], not %v", input.Shape)
	}
	sizes, err := window.Sizes(input.Shape[2:])
	if err != nil {
		return Operator{}, Tensor{}, err
	}
	operands := Computed(input)
	output := result(operands, slices.Concat(input.Shape[:2], sizes))
	op := NewOperator(kind, Pooling, operands, output)
	op.Operations = Product(output.Elements(), Product(window.Kernel...))
	op.Positions = Product(input.Shape[0], Product(sizes...))
	op.Kernel, op.Stride, op.Attributes = slices.Clone(window.Kernel), window.strides(), window.attributes()
	return op, output, nil
}

// NewGlobalPooling reduces each channel to one element.
func NewGlobalPooling(kind string, input Tensor) (Operator, Tensor, error) {
	if len(input.Shape) < 3 {
		return Operator{}, Tensor{}, problem.New(problem.Invalid, "a global pooling needs [samples, channels, sizes...], not %v", input.Shape)
	}
	shape := slices.Clone(input.Shape)
	for i := 2; i < len(shape); i++ {
		shape[i] = 1
	}
	operands := Computed(input)
	output := result(operands, shape)
	op := NewOperator(kind, Pooling, operands, output)
	op.Operations = input.Elements()
	return op, output, nil
}
