package emulator

import (
	"encoding/binary"
	"fmt"
	"math"
	"slices"
	"strings"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/tandem-tune/tandem/internal/problem"
)

// element is a type of which input tensors can be made up.
type element struct {
	name  string
	bytes int64
	// put writes one made-up value, of a random number.
	put func(to []byte, random uint32, below int64)
}

// elementOf has an empty name for a type of which nothing can be made up.
func elementOf(kind onnxruntime.TensorElementDataType) element {
	integer := func(name string, bytes int64) element {
		return element{name, bytes, func(to []byte, random uint32, below int64) {
			value := uint64(int64(random) % below)
			if bytes == 1 { // as many as fit into a signed one
				value = uint64(int64(random) % min(below, 128))
			}
			var whole [8]byte
			binary.LittleEndian.PutUint64(whole[:], value)
			copy(to, whole[:bytes])
		}}
	}
	switch kind {
	case onnxruntime.TensorElementDataTypeFloat:
		return element{"float32", 4, func(to []byte, random uint32, _ int64) {
			binary.LittleEndian.PutUint32(to, math.Float32bits(float32(random>>8)/(1<<24)))
		}}
	case onnxruntime.TensorElementDataTypeDouble:
		return element{"float64", 8, func(to []byte, random uint32, _ int64) {
			binary.LittleEndian.PutUint64(to, math.Float64bits(float64(random)/(1<<32)))
		}}
	// The short ones are from 0.5 to 1: a fixed exponent and random digits.
	case onnxruntime.TensorElementDataTypeFloat16:
		return element{"float16", 2, func(to []byte, random uint32, _ int64) {
			binary.LittleEndian.PutUint16(to, 0x3800|uint16(random>>22))
		}}
	case onnxruntime.TensorElementDataTypeBFloat16:
		return element{"bfloat16", 2, func(to []byte, random uint32, _ int64) {
			binary.LittleEndian.PutUint16(to, 0x3f00|uint16(random>>25))
		}}
	case onnxruntime.TensorElementDataTypeBool:
		return element{"bool", 1, func(to []byte, random uint32, _ int64) { to[0] = byte(random >> 31) }}
	case onnxruntime.TensorElementDataTypeInt8:
		return integer("int8", 1)
	case onnxruntime.TensorElementDataTypeUint8:
		return integer("uint8", 1)
	case onnxruntime.TensorElementDataTypeInt16:
		return integer("int16", 2)
	case onnxruntime.TensorElementDataTypeUint16:
		return integer("uint16", 2)
	case onnxruntime.TensorElementDataTypeInt32:
		return integer("int32", 4)
	case onnxruntime.TensorElementDataTypeUint32:
		return integer("uint32", 4)
	case onnxruntime.TensorElementDataTypeInt64:
		return integer("int64", 8)
	case onnxruntime.TensorElementDataTypeUint64:
		return integer("uint64", 8)
	}
	return element{}
}

// shaper gives the open dimensions of tensors their sizes.
type shaper struct {
	inputs Inputs
	names  []declared
	batch  int64
	// batched says that a dimension was the batch, assumed what was made up.
	batched bool
	assumed []string
}

// shape is the tensor's shape with all dimensions known.
func (s *shaper) shape(tensor onnxruntime.InputOutputInfo) (onnxruntime.Shape, error) {
	shape := slices.Clone(tensor.Dimensions)
	for axis, size := range shape {
		switch name := s.name(tensor.Name, axis); {
		case size >= 0:
		case s.isBatch(name, axis):
			shape[axis], s.batched = s.batch, true
		default:
			shape[axis] = s.size(tensor.Name, name, axis)
		}
	}
	if len(shape) == 0 {
		return nil, problem.New(problem.Invalid, "%q declares no dimensions: single numbers and tensors of unknown rank cannot be made up. Export the model with a known rank", tensor.Name)
	}
	return shape, nil
}

func (s *shaper) name(tensor string, axis int) string {
	for _, one := range s.names {
		if one.tensor.Name == tensor && axis < len(one.dimensions) {
			return one.dimensions[axis]
		}
	}
	return ""
}

func (s *shaper) isBatch(name string, axis int) bool {
	if _, given := s.inputs.Dimensions[name]; given && name != "" {
		return false
	}
	if s.inputs.BatchDimension != "" {
		return name == s.inputs.BatchDimension
	}
	lower := strings.ToLower(name)
	if s.named() {
		return lower == "n" || strings.Contains(lower, "batch")
	}
	return axis == 0
}

// named reports whether some dimension's name says that it is the batch.
func (s *shaper) named() bool {
	return slices.ContainsFunc(s.names, func(one declared) bool {
		return slices.ContainsFunc(one.dimensions, func(name string) bool {
			lower := strings.ToLower(name)
			return lower == "n" || strings.Contains(lower, "batch")
		})
	})
}

// size is what was given for a dimension, else 1.
func (s *shaper) size(tensor, name string, axis int) int64 {
	place := fmt.Sprintf("%s:%d", tensor, axis)
	for _, key := range []string{place, name} {
		if size, given := s.inputs.Dimensions[key]; given && key != "" {
			return size
		}
	}
	said := fmt.Sprintf("%s is open and was taken as 1", place)
	if name != "" {
		said = fmt.Sprintf("%s (%s) is open and was taken as 1", name, place)
	}
	if !slices.Contains(s.assumed, said) {
		s.assumed = append(s.assumed, said)
	}
	return 1
}

// makeUp fills a tensor with values that are the same every time.
func makeUp(tensor onnxruntime.InputOutputInfo, shape onnxruntime.Shape, below, limit int64) (onnxruntime.Value, error) {
	if tensor.OrtValueType != onnxruntime.ONNXTypeTensor {
		return nil, problem.New(problem.Invalid, "%q is no tensor (%s): only tensors can be made up", tensor.Name, tensor.OrtValueType)
	}
	of := elementOf(tensor.DataType)
	if of.name == "" {
		return nil, problem.New(problem.Invalid, "%q has elements of a type that cannot be made up (%s)", tensor.Name, tensor.DataType)
	}
	count, err := elements(tensor.Name, shape, limit/of.bytes)
	if err != nil {
		return nil, err
	}
	data := make([]byte, count*of.bytes)
	random := uint32(1)
	for at := int64(0); at < int64(len(data)); at += of.bytes {
		random = random*1664525 + 1013904223 // a linear congruential generator
		of.put(data[at:at+of.bytes], random, below)
	}
	value, err := onnxruntime.NewCustomDataTensor(shape, data, tensor.DataType)
	if err != nil {
		return nil, runtimeError("make the tensor "+tensor.Name, err)
	}
	return value, nil
}

// elements is the product of the shape, at least 1 and at most the limit.
func elements(name string, shape onnxruntime.Shape, limit int64) (int64, error) {
	count := int64(1)
	for _, size := range shape {
		if size <= 0 {
			return 0, problem.New(problem.Invalid, "%q has no elements: its shape is %v", name, shape)
		}
		if size > limit/count {
			return 0, problem.New(problem.Exhausted, "%q of shape %v does not fit into the memory limit: allow more memory, or a smaller batch", name, shape)
		}
		count *= size
	}
	return count, nil
}
