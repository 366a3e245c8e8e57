package emulator

import (
	"slices"

	onnxruntime "github.com/yalue/onnxruntime_go"

	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
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
	document.Visit(model, func(f document.Field) {
		if f.Number != modelGraph {
			return
		}
		document.Visit(f.Content, func(f document.Field) {
			switch {
			case f.Number == graphInput && len(inputs) < maxDeclared:
				inputs = append(inputs, declaration(f.Content))
			case f.Number == graphOutput && len(outputs) < maxDeclared:
				outputs = append(outputs, declaration(f.Content))
			case f.Number == graphInitializer:
				inside(f.Content, initializerName, func(f document.Field) { weights[string(f.Content)] = true })
			}
		})
	})
	return slices.DeleteFunc(inputs, func(d declared) bool { return weights[d.tensor.Name] }), outputs
}

func declaration(value []byte) declared {
	var d declared
	inside(value, valueName, func(f document.Field) { d.tensor.Name = string(f.Content) })
	inside(value, valueType, func(f document.Field) {
		document.Visit(f.Content, func(f document.Field) {
			switch f.Number {
			case typeTensor:
				d.tensor.OrtValueType = onnxruntime.ONNXTypeTensor
				d.readTensor(f.Content)
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
	document.Visit(tensor, func(f document.Field) {
		switch f.Number {
		case tensorElement:
			d.tensor.DataType = onnxruntime.TensorElementDataType(int32(f.Value))
		case tensorShape:
			inside(f.Content, shapeDimension, func(f document.Field) {
				size, name := int64(-1), ""
				inside(f.Content, dimensionSize, func(f document.Field) { size = int64(f.Value) })
				inside(f.Content, dimensionName, func(f document.Field) { name = string(f.Content[:min(len(f.Content), maxDimensionName)]) })
				if len(d.dimensions) < maxDimensions {
					d.tensor.Dimensions = append(d.tensor.Dimensions, size)
					d.dimensions = append(d.dimensions, name)
				}
			})
		}
	})
}

// inside visits the fields of one number.
func inside(content []byte, wanted int, visit func(document.Field)) {
	document.Visit(content, func(f document.Field) {
		if f.Number == wanted {
			visit(f)
		}
	})
}
