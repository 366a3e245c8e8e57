// Package onnxtest makes ONNX files that nobody should trust.
package onnxtest

import (
	"bytes"
	"fmt"
	"sync"

	"google.golang.org/protobuf/encoding/protowire"
)

// File is a file and what is wrong with it.
type File struct {
	Name string
	// Content makes it: some take seconds.
	Content func() []byte
	// Says is a part of the error with which it is refused; "" if it can be read.
	Says string
	// Runs is a part of the error of running it, where that is another one.
	Runs string
}

// Hostile are the files.
func Hostile() []File {
	const many = 200_000
	x := info(11, "x", 1, 4)
	y := info(12, "y", 1, 4)
	body := func(nodes []byte) []byte { return attribute("body", message(6, nodes)) }
	nested := func() []byte {
		nested := node("Relu", "a", "b")
		for range 1000 {
			nested = node("Loop", "a", "b", body(nested))
		}
		return nested
	}
	long := sync.OnceValue(func() []byte { return chain(many, "Relu") })
	return []File{
		{Name: "cycle", Content: func() []byte { return file(x, node("Relu", "b", "a"), node("Relu", "a", "b"), y) }, Says: "in a cycle"},
		{Name: "200,000 operators", Content: func() []byte { return file(x, long(), info(12, fmt.Sprint("v", many), 1, 4)) }, Says: "more than 50000 operators"},
		{Name: "200,000 operators in a loop", Content: func() []byte { return file(x, node("Loop", "x", "y", body(long())), y) }, Says: "more than 50000 operators"},
		{Name: "graphs within graphs", Content: func() []byte { return file(x, node("Loop", "x", "y", body(nested())), y) }, Says: "more than 16 graphs within each other"},
		{Name: "functions that double", Content: func() []byte { return append(file(x, in("local", node("F0", "x", "y")), y), functions(14)...) }, Says: "functions written out"},
		{Name: "a function of itself", Content: func() []byte {
			return append(file(x, in("local", node("F", "x", "y")), y), message(25, text(1, "F"), text(10, "local"), message(7, text(4, "F"), text(7, "local")))...)
		}, Says: "calls itself"},
		{Name: "control flow", Content: func() []byte { return file(x, node("If", "x", "y", body(nil)), info(12, "y", 1, -1)) }, Says: "shape_inference"},
		{Name: "repeats of 2^40", Content: func() []byte {
			return file(x, list("s", 1<<40), node("Tile", "x", "y", nil, "s"), info(12, "y", 1, -1))
		}, Says: "sizes are from 0 to"},
		{Name: "a shape of 2^60", Content: func() []byte {
			return file(info(11, "x", 1, 1<<30, 1<<30), node("Relu", "x", "y"), info(12, "y", 1, 1<<30, 1<<30))
		}, Says: "more than 1099511627776 elements"},
		{Name: "doubling 60 times", Content: func() []byte { return file(x, doubling(60), info(12, "v60", 1, -1)) }, Says: "1099511627776"},
		{Name: "a tensor of 64 GiB", Content: func() []byte {
			return file(x, list("s", 1<<34, 4), node("Expand", "x", "y", nil, "s"), info(12, "y", 1, 1<<34, 4))
		}, Runs: "--memory"},
		{Name: "a constant that is not there", Content: func() []byte {
			return file(x, message(5, text(8, "w"), integer(2, 1), integer(1, 1<<50)), node("Add", "x", "y", nil, "w"), y)
		}, Says: "sizes are from 0 to"},
		{Name: "sparse constant", Content: func() []byte { return file(x, message(15), y) }, Says: "sparse"},
		{Name: "64 million integers", Content: func() []byte {
			return file(x, node("Frob", "x", "y", attribute("a", message(8, make([]byte, 1<<26)))), y)
		}, Says: "more than 33554432 integers"},
		{Name: "a million inputs", Content: func() []byte {
			return file(x, message(1, text(4, "Concat"), bytes.Repeat(text(1, "x"), 1_000_000), text(2, "y")), y)
		}, Says: "more than 16384 inputs, outputs and attributes"},
		{Name: "a million outputs", Content: func() []byte { return file(x, message(1, text(4, "Split"), text(1, "x"), outputs(1_000_000)), y) }, Says: "more than 16384 inputs, outputs and attributes"},
		{Name: "200,000 constants", Content: func() []byte { return file(x, constants(many), node("Relu", "x", "y"), y) }, Says: "more than 50000 stored tensors"},
		{Name: "200,000 declarations", Content: func() []byte { return file(x, bytes.Repeat(info(13, "z", 1, 4), many), y) }, Says: "more than 50000 declared tensors"},
		{Name: "open dimensions", Content: func() []byte { return file(openInputs(1000), node("Relu", "x0", "y"), info(12, "y", 1, -1)) }, Says: "more open"},
		{Name: "a name of 5 MB", Content: func() []byte { return file(info(11, string(bytes.Repeat([]byte("x"), 5<<20)), 1, 4), y) }, Says: "longer than 4096 bytes"},
		{Name: "weights elsewhere", Content: func() []byte {
			return file(x, message(5, text(8, "w"), integer(2, 1), integer(1, 4), integer(14, 1), message(13, text(1, "location"), text(2, "/etc/passwd"))), node("Add", "x", "y", nil, "w"), y)
		}, Runs: "in another file"},
		{Name: "half a file", Content: func() []byte { return file(x, chain(1000, "Relu"), y)[:9000] }, Says: "only a part"},
		{Name: "256 MiB of zeros", Content: func() []byte { return make([]byte, 256<<20) }, Says: "not an ONNX file"},
		{Name: "sums of long constants", Content: func() []byte { return file(x, sums(49_000), node("Relu", "x", "y"), y) }, Runs: "ONNX Runtime"},
	}
}

// chain is so many operators, one after the other.
func chain(count int, kind string) []byte {
	var all []byte
	from := "x"
	for i := 1; i <= count; i++ {
		to := fmt.Sprint("v", i)
		all = append(all, node(kind, from, to)...)
		from = to
	}
	return all
}

// doubling joins a tensor with itself, again and again.
func doubling(count int) []byte {
	var all []byte
	from := "x"
	for i := 1; i <= count; i++ {
		to := fmt.Sprint("v", i)
		all = append(all, node("Concat", from, to, attribute("axis", integer(3, 0)), from)...)
		from = to
	}
	return all
}

// sums add up 4096 numbers, again and again.
func sums(count int) []byte {
	all := message(5, text(8, "w"), integer(2, 7), integer(1, 4096), message(7, make([]byte, 4096)))
	for i := range count {
		all = append(all, node("ReduceSum", "w", fmt.Sprint("s", i))...)
	}
	return all
}

func outputs(count int) []byte {
	var all []byte
	for i := range count {
		all = append(all, text(2, fmt.Sprint("o", i))...)
	}
	return all
}

func constants(count int) []byte {
	var all []byte
	for i := range count {
		all = append(all, list(fmt.Sprint("c", i), 1)...)
	}
	return all
}

func openInputs(count int) []byte {
	var all []byte
	for i := range count {
		all = append(all, info(11, fmt.Sprint("x", i), 1, -1, -1, -1, -1)...)
	}
	return all
}

// functions are so many, each of which calls the next one sixteen times.
func functions(count int) []byte {
	var all []byte
	for i := range count {
		one := [][]byte{text(1, fmt.Sprint("F", i)), text(10, "local")}
		for range 16 {
			one = append(one, message(7, text(4, fmt.Sprint("F", i+1)), text(7, "local")))
		}
		all = append(all, message(25, one...)...)
	}
	return all
}

func message(number protowire.Number, parts ...[]byte) []byte {
	all := bytes.Join(parts, nil)
	return append(protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.BytesType), uint64(len(all))), all...)
}

func text(number protowire.Number, s string) []byte { return message(number, []byte(s)) }

func integer(number protowire.Number, value int64) []byte {
	return protowire.AppendVarint(protowire.AppendTag(nil, number, protowire.VarintType), uint64(value))
}

// file is a model of ONNX's operators 13.
func file(parts ...[]byte) []byte {
	return bytes.Join([][]byte{integer(1, 8), message(8, text(1, ""), integer(2, 13)), message(8, text(1, "local"), integer(2, 1)), message(7, append(parts, text(2, "g"))...)}, nil)
}

func attribute(name string, value []byte) []byte { return message(5, text(1, name), value) }

// node reads a tensor, and perhaps others behind it.
func node(kind, from, to string, more ...any) []byte {
	parts := [][]byte{text(4, kind), text(1, from)}
	for _, one := range more {
		switch one := one.(type) {
		case []byte:
			parts = append(parts, one)
		case string:
			parts = append(parts, text(1, one))
		}
	}
	return message(1, append(parts, text(2, to))...)
}

// in moves a node into a domain.
func in(domain string, node []byte) []byte {
	_, _, n := protowire.ConsumeTag(node)
	content, _ := protowire.ConsumeBytes(node[n:])
	return message(1, content, text(7, domain))
}

// list is an initializer of integers.
func list(name string, values ...int64) []byte {
	var packed []byte
	for _, value := range values {
		packed = protowire.AppendVarint(packed, uint64(value))
	}
	return message(5, text(8, name), integer(2, 7), integer(1, int64(len(values))), message(7, packed))
}

// info declares an input (11), an output (12) or a tensor between (13); -1 is open.
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
