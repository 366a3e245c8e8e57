package onnx_test

import (
	"google.golang.org/protobuf/encoding/protowire"
)

// The functions here write the messages of ONNX, as exporters do.

func message(number protowire.Number, parts ...[]byte) []byte {
	var all []byte
	for _, part := range parts {
		all = append(all, part...)
	}
	return protowire.AppendBytes(protowire.AppendTag(nil, number, protowire.BytesType), all)
}

func text(number protowire.Number, s string) []byte { return message(number, []byte(s)) }

func integer(number protowire.Number, value int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(value))
}

func integers(number protowire.Number, list ...int64) []byte {
	var all []byte
	for _, value := range list {
		all = append(all, integer(number, value)...)
	}
	return all
}

// file is a model of nodes, tensors and inputs.
func file(parts ...[]byte) []byte { return message(7, parts...) }

func node(kind string, inputs, outputs []string, attributes ...[]byte) []byte {
	parts := [][]byte{text(4, kind)}
	for _, name := range inputs {
		parts = append(parts, text(1, name))
	}
	for _, name := range outputs {
		parts = append(parts, text(2, name))
	}
	return message(1, append(parts, attributes...)...)
}

func attribute(name string, list ...int64) []byte {
	return message(5, text(1, name), integers(8, list...))
}

func number(name string, value int64) []byte { return message(5, text(1, name), integer(3, value)) }

func word(name, value string) []byte { return message(5, text(1, name), text(4, value)) }

// tensor is an initializer without values; 1 is float32 and 7 int64.
func tensor(name string, kind int64, dims ...int64) []byte {
	return message(5, text(8, name), integer(2, kind), integers(1, dims...))
}

// list is an initializer of int64 with values.
func list(name string, values ...int64) []byte {
	return message(5, text(8, name), integer(2, 7), integers(1, int64(len(values))), integers(7, values...))
}

// info declares an input (11), an output (12) or a tensor between (13); -1 is an
// open dimension.
func info(number protowire.Number, name string, kind int64, dims ...int64) []byte {
	var shape [][]byte
	for _, dim := range dims {
		if dim < 0 {
			shape = append(shape, message(1))
			continue
		}
		shape = append(shape, message(1, integer(1, dim)))
	}
	return message(number, text(1, name), message(2, message(1, integer(1, kind), message(2, shape...))))
}
