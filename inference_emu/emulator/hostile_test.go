package emulator_test

import "encoding/binary"

// The few words of ONNX's schema that hostile models are written with: fields of
// protocol buffers.

func number(field int, value int64) []byte {
	return binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3), uint64(value))
}

func block(field int, parts ...[]byte) []byte {
	var content []byte
	for _, part := range parts {
		content = append(content, part...)
	}
	head := binary.AppendUvarint(binary.AppendUvarint(nil, uint64(field)<<3|2), uint64(len(content)))
	return append(head, content...)
}

func text(field int, content string) []byte { return block(field, []byte(content)) }

// model is a file with a graph, for a version of ONNX's operators.
func model(operators int64, graph ...[]byte) []byte {
	file := append(number(1, 8), block(7, append([][]byte{text(2, "graph")}, graph...)...)...)
	return append(file, block(8, text(1, ""), number(2, operators))...)
}

const (
	float32s = 1
	int64s   = 7
	bools    = 9
)

// value is an input (field 11) or an output (field 12) of a graph.
func value(field int, name string, kind int64, sizes ...int64) []byte {
	var shape [][]byte
	for _, size := range sizes {
		shape = append(shape, block(1, number(1, size)))
	}
	return block(field, text(1, name), block(2, block(1, number(1, kind), block(2, shape...))))
}

func node(kind string, inputs, outputs []string, attributes ...[]byte) []byte {
	var parts [][]byte
	for _, name := range inputs {
		parts = append(parts, text(1, name))
	}
	for _, name := range outputs {
		parts = append(parts, text(2, name))
	}
	return block(1, append(append(parts, text(4, kind)), attributes...)...)
}

// constant is a tensor of 64-bit integers.
func constant(name string, numbers ...int64) []byte {
	var raw []byte
	for _, one := range numbers {
		raw = binary.LittleEndian.AppendUint64(raw, uint64(one))
	}
	return block(5, number(1, int64(len(numbers))), number(2, int64s), text(8, name), block(9, raw))
}

// greedyModel wants 64 GiB when it runs.
func greedyModel() []byte {
	return model(13,
		node("Add", []string{"size", "many"}, []string{"shape"}),
		node("ConstantOfShape", []string{"shape"}, []string{"large"}),
		constant("many", 1<<34),
		value(11, "size", int64s, 1), value(12, "large", float32s, -1))
}

// largeModel wants memory for a constant, and for its sum with a number.
func largeModel(floats int64) []byte {
	return model(13,
		node("ConstantOfShape", []string{"shape"}, []string{"large"}),
		node("Add", []string{"large", "number"}, []string{"sum"}),
		constant("shape", floats),
		value(11, "number", float32s, 1), value(12, "sum", float32s, -1))
}

// endlessModel has a loop without an end.
func endlessModel() []byte {
	body := block(6, // the attribute's graph
		text(2, "body"),
		node("Identity", []string{"goes"}, []string{"on"}),
		node("Add", []string{"before", "before"}, []string{"after"}),
		value(11, "round", int64s), value(11, "goes", bools), value(11, "before", float32s, 1),
		value(12, "on", bools), value(12, "after", float32s, 1))
	return model(13,
		node("Loop", []string{"", "", "number"}, []string{"never"}, block(5, text(1, "body"), body, number(20, 5))),
		value(11, "number", float32s, 1), value(12, "never", float32s, 1))
}

// outsideModel has its weights in another file.
func outsideModel(path string) []byte {
	weights := block(5, number(1, 4), number(2, float32s), text(8, "weights"),
		block(13, text(1, "location"), text(2, path)), block(13, text(1, "length"), text(2, "16")), number(14, 1))
	return model(13, node("Add", []string{"number", "weights"}, []string{"sum"}), weights,
		value(11, "number", float32s, 4), value(12, "sum", float32s, 4))
}

func unknownModel() []byte {
	return model(13, node("NoSuchOperator", []string{"number"}, []string{"answer"}),
		value(11, "number", float32s, 1), value(12, "answer", float32s, 1))
}

// futureModel is of a version of ONNX's operators that does not exist yet.
func futureModel() []byte {
	return model(9999, node("Identity", []string{"number"}, []string{"answer"}),
		value(11, "number", float32s, 1), value(12, "answer", float32s, 1))
}
