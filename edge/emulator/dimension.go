package emulator

import "encoding/binary"

// declared is an input or output as the file declares it, with the names of its
// dimensions, which the library does not tell; "" where a dimension has none.
type declared struct {
	name       string
	dimensions []string
}

// The numbers of the fields in ONNX's schema on the way to a dimension's name.
const (
	modelGraph       = 7
	graphInput       = 11
	graphOutput      = 12
	valueName        = 1
	valueType        = 2
	typeTensor       = 1
	tensorShape      = 2
	shapeDimension   = 1
	dimensionByName  = 2
	maxDeclared      = 1000
	maxDimensions    = 64
	maxDimensionName = 200
)

// declaredInputs reads the names of inputs, outputs and their dimensions. What is
// broken is skipped: the library will say what is wrong with the file.
func declaredInputs(model []byte) []declared {
	var found []declared
	fields(model, func(number uint64, graph []byte) {
		if number != modelGraph {
			return
		}
		fields(graph, func(number uint64, value []byte) {
			if (number == graphInput || number == graphOutput) && len(found) < maxDeclared {
				found = append(found, declaredValue(value))
			}
		})
	})
	return found
}

func declaredValue(value []byte) declared {
	var d declared
	fields(value, func(number uint64, content []byte) {
		switch number {
		case valueName:
			d.name = string(content)
		case valueType:
			inside(content, typeTensor, func(tensor []byte) {
				inside(tensor, tensorShape, func(shape []byte) {
					inside(shape, shapeDimension, func(dimension []byte) {
						name := ""
						inside(dimension, dimensionByName, func(text []byte) { name = string(text[:min(len(text), maxDimensionName)]) })
						if len(d.dimensions) < maxDimensions {
							d.dimensions = append(d.dimensions, name)
						}
					})
				})
			})
		}
	})
	return d
}

// inside visits the fields of one number.
func inside(content []byte, wanted uint64, visit func([]byte)) {
	fields(content, func(number uint64, content []byte) {
		if number == wanted {
			visit(content)
		}
	})
}

// fields visits the fields of a protocol buffer message that have a length: texts
// and messages. It ends where the content makes no sense.
func fields(content []byte, visit func(number uint64, content []byte)) {
	for len(content) > 0 {
		key, n := binary.Uvarint(content)
		if n <= 0 {
			return
		}
		content = content[n:]
		skip := uint64(0)
		switch key & 7 {
		case 0: // a number
			_, n := binary.Uvarint(content)
			skip = uint64(max(n, 0))
			if n <= 0 {
				return
			}
		case 1:
			skip = 8
		case 5:
			skip = 4
		case 2:
			length, n := binary.Uvarint(content)
			if n <= 0 || length > uint64(len(content)-n) {
				return
			}
			visit(key>>3, content[n:uint64(n)+length])
			skip = uint64(n) + length
		default:
			return
		}
		if skip > uint64(len(content)) {
			return
		}
		content = content[skip:]
	}
}
