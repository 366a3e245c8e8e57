package emulator

import (
	"slices"

	onnxruntime "github.com/yalue/onnxruntime_go"
	"google.golang.org/protobuf/encoding/protowire"
)

// declared is an input or output as the file declares it, with the names of its
// dimensions, which the library does not tell; "" where a dimension has none.
type declared struct {
	tensor     onnxruntime.InputOutputInfo
	dimensions []string
}

// The numbers of the fields in ONNX's schema on the way to a tensor's type and
// dimensions.
const (
	modelGraph       = 7
	graphInitializer = 5
	graphInput       = 11
	graphOutput      = 12
	initializerName  = 8
	valueName        = 1
	valueType        = 2
	typeTensor       = 1
	typeSequence     = 4
	typeMap          = 5
	tensorElement    = 1
	tensorShape      = 2
	shapeDimension   = 1
	dimensionSize    = 1
	dimensionName    = 2
)

// The bounds of what is taken from a file.
const (
	maxDeclared      = 1000
	maxDimensions    = 64
	maxDimensionName = 200
)

// declarations reads what a model takes and gives. What is broken is skipped: the
// library will say what is wrong with the file. Inputs that the file has a value
// for, as old files list their weights, are no inputs.
func declarations(model []byte) (inputs, outputs []declared) {
	weights := map[string]bool{}
	visitFields(model, func(f field) {
		if f.number != modelGraph {
			return
		}
		visitFields(f.content, func(f field) {
			switch {
			case f.number == graphInput && len(inputs) < maxDeclared:
				inputs = append(inputs, declaration(f.content))
			case f.number == graphOutput && len(outputs) < maxDeclared:
				outputs = append(outputs, declaration(f.content))
			case f.number == graphInitializer:
				inside(f.content, initializerName, func(f field) { weights[string(f.content)] = true })
			}
		})
	})
	return slices.DeleteFunc(inputs, func(d declared) bool { return weights[d.tensor.Name] }), outputs
}

func declaration(value []byte) declared {
	var d declared
	inside(value, valueName, func(f field) { d.tensor.Name = string(f.content) })
	inside(value, valueType, func(f field) {
		visitFields(f.content, func(f field) {
			switch f.number {
			case typeTensor:
				d.tensor.OrtValueType = onnxruntime.ONNXTypeTensor
				d.readTensor(f.content)
			case typeSequence:
				d.tensor.OrtValueType = onnxruntime.ONNXTypeSequence
			case typeMap:
				d.tensor.OrtValueType = onnxruntime.ONNXTypeMap
			}
		})
	})
	return d
}

// readTensor reads the type of the elements, whose numbers are those of the
// library, and the shape.
func (d *declared) readTensor(tensor []byte) {
	visitFields(tensor, func(f field) {
		switch f.number {
		case tensorElement:
			d.tensor.DataType = onnxruntime.TensorElementDataType(int32(f.value))
		case tensorShape:
			inside(f.content, shapeDimension, func(f field) {
				size, name := int64(-1), ""
				inside(f.content, dimensionSize, func(f field) { size = int64(f.value) })
				inside(f.content, dimensionName, func(f field) { name = string(f.content[:min(len(f.content), maxDimensionName)]) })
				if len(d.dimensions) < maxDimensions {
					d.tensor.Dimensions = append(d.tensor.Dimensions, size)
					d.dimensions = append(d.dimensions, name)
				}
			})
		}
	})
}

// field is one of a protocol buffer message: a number, or a content that is a text
// or a message.
type field struct {
	number  protowire.Number
	value   uint64
	content []byte
}

// inside visits the fields of one number.
func inside(content []byte, wanted protowire.Number, visit func(field)) {
	visitFields(content, func(f field) {
		if f.number == wanted {
			visit(f)
		}
	})
}

// visitFields visits the fields of a message that have whole numbers or contents.
// It ends where the bytes make no sense.
func visitFields(content []byte, visit func(field)) {
	for len(content) > 0 {
		number, kind, n := protowire.ConsumeTag(content)
		if n < 0 {
			return
		}
		content = content[n:]
		f := field{number: number}
		switch kind {
		case protowire.VarintType:
			f.value, n = protowire.ConsumeVarint(content)
		case protowire.BytesType:
			f.content, n = protowire.ConsumeBytes(content)
		default:
			n = protowire.ConsumeFieldValue(number, kind, content)
		}
		if n < 0 {
			return
		}
		if kind == protowire.VarintType || kind == protowire.BytesType {
			visit(f)
		}
		content = content[n:]
	}
}
