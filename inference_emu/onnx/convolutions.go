package onnx

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// window reads the attributes that convolutions and poolings of images share.
func (s *step) window() (graph.Window, error) {
	if len(s.inputs[0].Shape) < 3 {
		return graph.Window{}, problem.New(problem.Invalid, "input %v: [samples, channels, sizes...] are needed", s.inputs[0].Shape)
	}
	spatial := s.inputs[0].Shape[2:]
	w := graph.Window{Kernel: s.integers("kernel_shape"), Stride: s.integers("strides"), Dilation: s.integers("dilations"), Ceil: s.integer("ceil_mode", 0) != 0}
	pads := s.integers("pads")
	switch auto := s.text("auto_pad", "NOTSET"); auto {
	case "SAME_UPPER", "SAME_LOWER":
		w.Same = true
	case "VALID":
	case "NOTSET", "":
		if len(pads) != 0 && len(pads) != 2*len(spatial) {
			return w, problem.New(problem.Invalid, "pads %v: two for each of %d dimensions are needed", pads, len(spatial))
		}
		if len(pads) > 0 {
			w.Begin, w.End = pads[:len(spatial)], pads[len(spatial):]
		}
	default:
		return w, problem.New(problem.Invalid, "auto_pad %q is not known", auto)
	}
	return w, nil
}

func convolution(s *step) error {
	window, err := s.window()
	if err != nil {
		return err
	}
	operands := s.pick(0, 1, 2)
	switch s.node.Kind {
	case "ConvInteger":
		operands = s.pick(0, 1)
	case "QLinearConv":
		operands = s.pick(0, 3, 8)
	}
	op, output, err := graph.NewConvolution(operands, window, s.integer("group", 1))
	if err != nil {
		return err
	}
	switch s.node.Kind {
	case "ConvInteger":
		retype(&op, &output, graph.Int32)
	case "QLinearConv":
		retype(&op, &output, graph.Int8)
	}
	return s.emit(op, output)
}

func transposedConvolution(s *step) error {
	window, err := s.window()
	if err != nil {
		return err
	}
	settings := graph.Transposing{Groups: s.integer("group", 1), Extra: s.integers("output_padding")}
	if sizes := s.integers("output_shape"); len(sizes) > 0 {
		if len(sizes) != len(s.inputs[0].Shape)-2 {
			return problem.New(problem.Invalid, "output_shape %v: %d sizes are needed", sizes, len(s.inputs[0].Shape)-2)
		}
		settings.Sizes = sizes
	}
	return s.emitOne(graph.NewTransposedConvolution(s.pick(0, 1, 2), window, settings))
}

func pooling(s *step) error {
	window, err := s.window()
	if err != nil {
		return err
	}
	op, output, err := graph.NewPooling(s.node.Kind, s.inputs[0].Tensor, window)
	if err != nil {
		return err
	}
	places := output // where the maxima were
	places.Type = graph.Int64
	return s.emit(op, output, places)
}

func globalPooling(s *step) error {
	return s.emitOne(graph.NewGlobalPooling(s.node.Kind, s.inputs[0].Tensor))
}

func resize(s *step) error {
	input := s.inputs[0].Tensor
	shape, err := s.resized(input.Shape)
	if err != nil {
		return err
	}
	output := s.like(input, shape)
	op := graph.NewMovement(s.node.Kind, s.pick(0), output)
	op.Attributes = s.settings()
	points, changed := int64(0), 0
	for i := range shape {
		if shape[i] != input.Shape[i] {
			changed++
		}
	}
	switch s.text("mode", "nearest") {
	case "linear", "bilinear":
		points = 1 << changed
	case "cubic":
		points = 1 << (2 * changed)
	}
	if points > 0 { // a weighted sum of the points around each
		op.Class, op.Operations = graph.Elementwise, graph.Product(2, points, output.Elements())
	}
	return s.emit(op, output)
}

// resized is the shape after a Resize or Upsample: by sizes, or by factors.
func (s *step) resized(shape []int64) ([]int64, error) {
	axes, err := s.axesOf(len(shape))
	if err != nil {
		return nil, err
	}
	if s.has(3) {
		sizes, err := s.numbers(3)
		if err != nil {
			return nil, err
		}
		if len(sizes) != len(axes) {
			return nil, problem.New(problem.Invalid, "%d sizes for %d dimensions", len(sizes), len(axes))
		}
		shape = slices.Clone(shape)
		for i, at := range axes {
			shape[at] = sizes[i]
		}
		return shape, nil
	}
	factors := s.node.Attribute("scales").Floats
	for _, at := range []int{2, 1} { // Resize has them third, since version 11
		if len(factors) == 0 && s.has(at) {
			factors = s.inputs[at].numbers
		}
	}
	if len(factors) != len(axes) {
		return nil, problem.New(problem.Invalid, "%d factors for %d dimensions, or they are not known before it runs", len(factors), len(axes))
	}
	shape = slices.Clone(shape)
	for i, at := range axes {
		shape[at] = whole(float64(shape[at]) * factors[i])
	}
	return shape, nil
}
