package graph

import (
	"fmt"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Window is how a kernel moves over the spatial dimensions of a tensor. A list
// that is empty stands for its default in each dimension: stride and dilation 1,
// no padding.
type Window struct {
	Kernel   []int64
	Stride   []int64
	Dilation []int64
	// Begin and End are the padding before and after each dimension.
	Begin, End []int64
	// Same pads so that the output has the size of the input divided by the
	// stride, rounded up ("SAME" in TensorFlow); Begin and End are not used.
	Same bool
	// Ceil rounds the size of the output up (poolings).
	Ceil bool
}

// or gives the value of a dimension, or the default of an empty list.
func or(list []int64, i int, standard int64) int64 {
	if len(list) == 0 {
		return standard
	}
	return list[i]
}

// maxSize bounds the numbers of a window, so that no sum of them overflows.
const maxSize = int64(1) << 40

func (w Window) check(spatial []int64) error {
	for _, one := range []struct {
		name  string
		list  []int64
		least int64
	}{{"kernel", w.Kernel, 1}, {"stride", w.Stride, 1}, {"dilation", w.Dilation, 1}, {"padding", w.Begin, -maxSize}, {"padding", w.End, -maxSize}, {"input", spatial, 0}} {
		if len(one.list) != len(spatial) && (len(one.list) != 0 || one.name == "kernel") {
			return problem.New(problem.Invalid, "%s has %d dimensions, the input has %d spatial ones", one.name, len(one.list), len(spatial))
		}
		for _, size := range one.list {
			if size < one.least || size > maxSize {
				return problem.New(problem.Invalid, "%s %v: a size is out of range", one.name, one.list)
			}
		}
	}
	return nil
}

// reach is how many elements a dilated kernel spans in dimension i.
func (w Window) reach(i int) int64 { return Sum(Product(w.Kernel[i]-1, or(w.Dilation, i, 1)), 1) }

// Sizes are those of the output for the spatial sizes of an input.
func (w Window) Sizes(spatial []int64) ([]int64, error) {
	if err := w.check(spatial); err != nil {
		return nil, err
	}
	sizes := make([]int64, len(spatial))
	for i, size := range spatial {
		stride := or(w.Stride, i, 1)
		if w.Same {
			sizes[i] = (size + stride - 1) / stride
			continue
		}
		begin := or(w.Begin, i, 0)
		room := size + begin + or(w.End, i, 0) - w.reach(i)
		if room < 0 {
			return nil, problem.New(problem.Invalid, "a kernel that spans %d does not fit into dimension %d of size %d with its padding", w.reach(i), i, size)
		}
		sizes[i] = room/stride + 1
		// A window that would start in the padding behind the input is left out.
		if w.Ceil && room%stride != 0 && sizes[i]*stride < size+begin {
			sizes[i]++
		}
	}
	return sizes, nil
}

// TransposedSizes are those of a transposed convolution's output; extra is what
// is added at the end of each dimension ("output_padding").
func (w Window) TransposedSizes(spatial, extra []int64) ([]int64, error) {
	if err := w.check(spatial); err != nil {
		return nil, err
	}
	if len(extra) != 0 && len(extra) != len(spatial) {
		return nil, problem.New(problem.Invalid, "output padding has %d dimensions, the input has %d spatial ones", len(extra), len(spatial))
	}
	sizes := make([]int64, len(spatial))
	for i, size := range spatial {
		stride := or(w.Stride, i, 1)
		if w.Same {
			sizes[i] = Product(size, stride)
			continue
		}
		sizes[i] = Sum(Product(size-1, stride), w.reach(i)) + max(-maxSize, min(or(extra, i, 0), maxSize))
		sizes[i] -= or(w.Begin, i, 0) + or(w.End, i, 0)
		if size < 1 || sizes[i] < 1 || sizes[i] > maxSize {
			return nil, problem.New(problem.Invalid, "dimension %d of the output would have size %d", i, sizes[i])
		}
	}
	return sizes, nil
}

// attributes are what the fields of an operator do not say of the window.
func (w Window) attributes() []string {
	var list []string
	for i := range w.Kernel {
		if d := or(w.Dilation, i, 1); d != 1 {
			list = append(list, fmt.Sprintf("dilation.%d=%d", i, d))
		}
		if begin := or(w.Begin, i, 0); begin != 0 && !w.Same {
			list = append(list, fmt.Sprintf("begin.%d=%d", i, begin))
		}
	}
	return list
}

// strides has the stride of each dimension written out.
func (w Window) strides() []int64 {
	list := make([]int64, len(w.Kernel))
	for i := range list {
		list[i] = or(w.Stride, i, 1)
	}
	return list
}
