package onnx

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// decoder takes messages apart within limits.
type decoder struct {
	limits Limits
	folded int // values kept so far
	parts  int // names and attributes of nodes so far
}

// text is a name, as bytes of the file.
func (d *decoder) text(f field) (string, error) {
	if f.kind != protowire.BytesType || len(f.bytes) > d.limits.Name || !utf8.Valid(f.bytes) {
		return "", problem.New(problem.Invalid, "a name in the file is not text, or longer than %d bytes", d.limits.Name)
	}
	return string(f.bytes), nil
}

func (d *decoder) model(file []byte) (model, error) {
	var m model
	graphs := 0
	err := fields(file, func(f field) error {
		if f.number != 7 || f.kind != protowire.BytesType {
			return nil
		}
		graphs++
		return d.graph(&m, f.bytes)
	})
	if err == nil && graphs != 1 {
		err = problem.New(problem.Invalid, "this is not an ONNX file: it has %d graphs instead of one", graphs)
	}
	return m, err
}

func (d *decoder) graph(m *model, message []byte) error {
	return fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			if len(m.nodes) >= d.limits.Nodes {
				return exhausted("operators", d.limits.Nodes)
			}
			var one node
			if one, err = d.node(f.bytes); err != nil {
				return within(err, "node %d %q", len(m.nodes), one.name)
			}
			m.nodes = append(m.nodes, one)
		case 2:
			m.name, err = d.text(f)
		case 5, 15:
			if len(m.stored) >= d.limits.Tensors {
				return exhausted("stored tensors", d.limits.Tensors)
			}
			if f.number == 15 {
				return problem.New(problem.Invalid, "sparse initializers are not supported: store them dense")
			}
			var one stored
			if one, err = d.tensor(f.bytes); err != nil {
				return within(err, "initializer %q", one.name)
			}
			m.stored = append(m.stored, one)
		case 11:
			err = d.appendInfo(&m.inputs, f.bytes)
		case 12:
			err = d.appendInfo(&m.outputs, f.bytes)
		case 13:
			err = d.appendInfo(&m.infos, f.bytes)
		}
		return err
	})
}

func (d *decoder) node(message []byte) (node, error) {
	one := node{attributes: map[string]attribute{}}
	err := fields(message, func(f field) (err error) {
		var text string
		if d.parts++; d.parts > 10*d.limits.Nodes {
			return exhausted("parts of operators", 10*d.limits.Nodes)
		}
		switch f.number {
		case 1, 2, 3, 4, 7:
			if text, err = d.text(f); err != nil {
				return err
			}
		}
		switch f.number {
		case 1:
			one.inputs = append(one.inputs, text)
		case 2:
			one.outputs = append(one.outputs, text)
		case 3:
			one.name = text
		case 4:
			one.kind = text
		case 5:
			name, value, err := d.attribute(f.bytes)
			if err != nil {
				return within(err, "attribute %q", name)
			}
			one.attributes[name] = value
		case 7:
			one.domain = text
		}
		return err
	})
	if one.domain == "ai.onnx" {
		one.domain = ""
	}
	return one, err
}

func (d *decoder) attribute(message []byte) (string, attribute, error) {
	var name string
	var a attribute
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			name, err = d.text(f)
		case 2:
			a.float, a.is = float64(math.Float32frombits(uint32(f.bits))), isFloat
		case 3:
			a.integer, a.is = int64(f.bits), isInteger
		case 4: // text may be anything, and long; only short ones are looked at
			if len(f.bytes) <= d.limits.Name {
				a.text, a.is = string(f.bytes), isText
			}
		case 5:
			var one stored
			one, err = d.tensor(f.bytes)
			a.tensor = &one
		case 7:
			a.count += f.count(4)
			a.floats = someFloats(a.floats, f, d.limits.Dimensions)
		case 8:
			a.is = isIntegers
			a.integers, err = f.integers(a.integers, math.MaxInt)
		case 9:
			a.count++
		case 6, 11:
			a.subgraph = true
		}
		return err
	})
	return name, a, err
}

// someFloats keeps the first floats of a list: scales of a resize are few.
func someFloats(list []float64, f field, limit int) []float64 {
	if f.kind == protowire.Fixed32Type && len(list) < limit {
		return append(list, float64(math.Float32frombits(uint32(f.bits))))
	}
	for i := 0; i+4 <= len(f.bytes) && len(list) < limit; i += 4 {
		list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(f.bytes[i:]))))
	}
	return list
}

// tensor reads a TensorProto and its values if they are few.
func (d *decoder) tensor(message []byte) (stored, error) {
	var one stored
	var v values
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			if one.shape, err = f.integers(one.shape, d.limits.Dimensions+1); len(one.shape) > d.limits.Dimensions {
				return exhausted("dimensions in a tensor", d.limits.Dimensions)
			}
		case 2:
			v.code = f.bits
		case 4:
			v.floats = f.bytes
			if f.kind == protowire.Fixed32Type && len(v.loose) <= d.limits.Folded {
				v.loose = append(v.loose, float64(math.Float32frombits(uint32(f.bits))))
			}
		case 5, 7, 11:
			v.integers, err = f.integers(v.integers, d.limits.Folded+1)
		case 8:
			one.name, err = d.text(f)
		case 9:
			v.raw = f.bytes
		case 10:
			v.doubles = f.bytes
			if f.kind == protowire.Fixed64Type && len(v.loose) <= d.limits.Folded {
				v.loose = append(v.loose, math.Float64frombits(f.bits))
			}
		case 14:
			v.outside = f.bits == 1
		}
		return err
	})
	if err != nil {
		return one, err
	}
	var width int
	one.kind, width = elementType(v.code)
	if err := checkShape(one.shape, d.limits); err != nil {
		return one, err
	}
	if need := graph.Product(one.shape...) * int64(width); v.raw != nil && !v.outside && width > 0 && need != int64(len(v.raw)) {
		return one, problem.New(problem.Invalid, "it has %d bytes, its shape %v needs %d", len(v.raw), one.shape, need)
	}
	// Float16 holds no shapes, and large tensors are weights.
	count := graph.Product(one.shape...)
	if count <= int64(d.limits.Folded) && d.folded+int(count) <= totalFolded && one.kind != graph.Float16 {
		one.numbers = v.numbers(int(count))
		d.folded += len(one.numbers)
	}
	return one, nil
}

// checkShape says whether a tensor may have a shape.
func checkShape(shape []int64, limits Limits) error {
	if len(shape) > limits.Dimensions {
		return exhausted("dimensions in a tensor", limits.Dimensions)
	}
	for _, size := range shape {
		if size < 0 || size > limits.Elements {
			return problem.New(problem.Invalid, "shape %v: sizes are from 0 to %d", shape, limits.Elements)
		}
	}
	if graph.Product(shape...) > limits.Elements {
		return problem.New(problem.Exhausted, "shape %v has more than %d elements", shape, limits.Elements)
	}
	return nil
}

func (d *decoder) appendInfo(list *[]valueInfo, message []byte) error {
	if len(*list) >= d.limits.Tensors {
		return exhausted("declared tensors", d.limits.Tensors)
	}
	var info valueInfo
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			info.name, err = d.text(f)
		case 2: // TypeProto
			err = fields(f.bytes, func(f field) error {
				if f.number != 1 { // sequences and maps have no shape
					return nil
				}
				return d.tensorType(&info, f.bytes)
			})
		}
		return err
	})
	if err != nil {
		return within(err, "tensor %q", info.name)
	}
	*list = append(*list, info)
	return nil
}

func (d *decoder) tensorType(info *valueInfo, message []byte) error {
	return fields(message, func(f field) error {
		switch f.number {
		case 1:
			info.kind, _ = elementType(f.bits)
		case 2:
			info.shape = true
			return fields(f.bytes, func(f field) error {
				if f.number != 1 {
					return nil
				}
				if len(info.dims) >= d.limits.Dimensions {
					return exhausted("dimensions in a tensor", d.limits.Dimensions)
				}
				one := dimension{size: -1}
				err := fields(f.bytes, func(f field) (err error) {
					switch f.number {
					case 1:
						if one.size = int64(f.bits); one.size < 1 {
							one.size = -1 // how some say that it is open
						}
					case 2:
						one.name, err = d.text(f)
					}
					return err
				})
				info.dims = append(info.dims, one)
				return err
			})
		}
		return nil
	})
}
