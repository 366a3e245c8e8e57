// Package document takes ONNX files apart at the level of the wire, within limits.
package document

import (
	"encoding/binary"
	"math"
	"unicode/utf8"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Limits bound what a file may ask for.
type Limits struct {
	Bytes      int   // of the file, 2 GiB if 0: the most that the format allows
	Nodes      int   // operators, those of inner graphs and functions among them, 50,000 if 0
	Tensors    int   // stored ones, 50,000 if 0
	Parts      int   // inputs, outputs and attributes of an operator, 16,384 if 0
	Integers   int   // in all attributes together, 2^25 if 0
	Depth      int   // of graphs and functions within each other, 16 if 0
	Dimensions int   // of a tensor, 16 if 0
	Elements   int64 // of a tensor, 2^40 if 0
	Name       int   // bytes of a name, 4096 if 0
	Folded     int   // elements of a tensor whose values are followed, 4096 if 0
}

// TotalFolded bounds the values that are followed in one file, together.
const TotalFolded = 1 << 20

// Complete puts the default where a limit is 0.
func (l Limits) Complete() Limits {
	for _, one := range []struct {
		limit    *int
		standard int
	}{{&l.Bytes, 1<<31 - 1}, {&l.Nodes, 50_000}, {&l.Tensors, 50_000}, {&l.Parts, 1 << 14}, {&l.Integers, 1 << 25}, {&l.Depth, 16},
		{&l.Dimensions, 16}, {&l.Name, 4096}, {&l.Folded, 4096}} {
		if *one.limit <= 0 {
			*one.limit = one.standard
		}
	}
	if l.Elements <= 0 || l.Elements > 1<<40 {
		l.Elements = 1 << 40
	}
	return l
}

// Read takes a file apart.
func Read(file []byte, limits Limits) (Model, error) {
	if len(file) > limits.Bytes {
		return Model{}, problem.New(problem.Exhausted, "the file has %d bytes, at most %d are read", len(file), limits.Bytes)
	}
	d := decoder{limits: limits, within: newBody(), functions: map[call]*body{}}
	m, err := d.model(file)
	if foreign := Foreign(file); err != nil && foreign != nil {
		err = foreign
	}
	return m, err
}

// decoder takes messages apart within limits.
type decoder struct {
	limits Limits
	folded int // values kept so far
	parts  int // names and attributes of nodes so far
	nodes  int // so far, inner ones among them

	integers  int // of attributes so far
	within    *body
	functions map[call]*body
}

// text is a name, as bytes of the file.
func (d *decoder) text(f field) (string, error) {
	if f.kind != protowire.BytesType || len(f.bytes) > d.limits.Name || !utf8.Valid(f.bytes) {
		return "", problem.New(problem.Invalid, "a name in the file is not text, or longer than %d bytes", d.limits.Name)
	}
	return string(f.bytes), nil
}

func (d *decoder) model(file []byte) (Model, error) {
	var m Model
	graphs := 0
	err := fields(file, func(f field) error {
		if f.kind != protowire.BytesType {
			return nil
		}
		switch f.number {
		case 7:
			graphs++
			return d.graph(&m, f.bytes)
		case 25:
			return d.function(f.bytes)
		}
		return nil
	})
	if err == nil && graphs != 1 {
		err = problem.New(problem.Invalid, "this is not an ONNX file: it has %d graphs instead of one", graphs)
	}
	if err == nil {
		err = d.written()
	}
	return m, err
}

func (d *decoder) graph(m *Model, message []byte) error {
	return fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			var one Node
			if one, err = d.node(f.bytes); err != nil {
				return Within(err, "node %d %q", len(m.Nodes), one.Name)
			}
			if err = d.count(one.Domain, one.Kind); err != nil {
				return err
			}
			m.Nodes = append(m.Nodes, one)
		case 2:
			m.Name, err = d.text(f)
		case 5, 15:
			if len(m.Stored) >= d.limits.Tensors {
				return Exhausted("stored tensors", d.limits.Tensors)
			}
			if f.number == 15 {
				return problem.New(problem.Invalid, "sparse initializers are not supported: store them dense")
			}
			var one Stored
			if one, err = d.tensor(f.bytes); err != nil {
				return Within(err, "initializer %q", one.Name)
			}
			m.Stored = append(m.Stored, one)
		case 11:
			err = d.appendInfo(&m.inputs, f.bytes)
		case 12:
			err = d.appendInfo(&m.Outputs, f.bytes)
		case 13:
			err = d.appendInfo(&m.Infos, f.bytes)
		}
		return err
	})
}

func (d *decoder) node(message []byte) (Node, error) {
	var one Node
	parts := 0
	err := fields(message, func(f field) (err error) {
		var text string
		if parts++; parts > d.limits.Parts {
			return Exhausted("inputs, outputs and attributes of an operator", d.limits.Parts)
		}
		if d.parts++; d.parts > 10*d.limits.Nodes {
			return Exhausted("parts of operators", 10*d.limits.Nodes)
		}
		switch f.number {
		case 1, 2, 3, 4, 7:
			if text, err = d.text(f); err != nil {
				return err
			}
		}
		switch f.number {
		case 1:
			one.Inputs = append(one.Inputs, text)
		case 2:
			one.Outputs = append(one.Outputs, text)
		case 3:
			one.Name = text
		case 4:
			one.Kind = text
		case 5:
			name, value, err := d.attribute(f.bytes)
			if err != nil {
				return Within(err, "attribute %q", name)
			}
			if one.Attributes == nil {
				one.Attributes = map[string]*attribute{}
			}
			one.Attributes[name] = value
		case 7:
			one.Domain = text
		}
		return err
	})
	if one.Domain == "ai.onnx" {
		one.Domain = ""
	}
	return one, err
}

func (d *decoder) attribute(message []byte) (string, *attribute, error) {
	var name string
	a := &attribute{}
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			name, err = d.text(f)
		case 2:
			a.Float, a.Is = float64(math.Float32frombits(uint32(f.bits))), IsFloat
		case 3:
			a.Integer, a.Is = int64(f.bits), IsInteger
		case 4: // text may be anything, and long; only short ones are looked at
			if len(f.bytes) <= d.limits.Name {
				a.Text, a.Is = string(f.bytes), IsText
			}
		case 5:
			var one Stored
			one, err = d.tensor(f.bytes)
			a.Tensor = &one
		case 7:
			a.Count += f.count(4)
			a.Floats = someFloats(a.Floats, f, d.limits.Dimensions)
		case 8:
			a.Is = IsIntegers
			err = f.each(func(number int64) error {
				if d.integers++; d.integers > d.limits.Integers {
					return Exhausted("integers in attributes", d.limits.Integers)
				}
				a.take(number, d.limits.Folded)
				return nil
			})
		case 9:
			a.Count++
		case 6, 11:
			a.Subgraph = true
			err = d.inner(f.bytes, 1)
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
func (d *decoder) tensor(message []byte) (Stored, error) {
	var one Stored
	var v values
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			if one.Shape, err = f.integers(one.Shape, d.limits.Dimensions+1); len(one.Shape) > d.limits.Dimensions {
				return Exhausted("dimensions in a tensor", d.limits.Dimensions)
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
			one.Name, err = d.text(f)
		case 9:
			v.raw = f.bytes
		case 10:
			v.doubles = f.bytes
			if f.kind == protowire.Fixed64Type && len(v.loose) <= d.limits.Folded {
				v.loose = append(v.loose, math.Float64frombits(f.bits))
			}
		case 14:
			v.outside = f.bits == 1
			one.Outside = v.outside
		}
		return err
	})
	if err != nil {
		return one, err
	}
	var width int
	one.Kind, width = ElementType(v.code)
	if err := CheckShape(one.Shape, d.limits); err != nil {
		return one, err
	}
	if need := graph.Product(one.Shape...) * int64(width); v.raw != nil && !v.outside && width > 0 && need != int64(len(v.raw)) {
		return one, problem.New(problem.Invalid, "it has %d bytes, its shape %v needs %d", len(v.raw), one.Shape, need)
	}
	// Float16 holds no shapes, and large tensors are weights.
	count := graph.Product(one.Shape...)
	if count <= int64(d.limits.Folded) && d.folded+int(count) <= TotalFolded && one.Kind != graph.Float16 {
		one.Numbers = v.numbers(int(count))
		d.folded += len(one.Numbers)
	}
	return one, nil
}

// CheckShape says whether a tensor may have a shape.
func CheckShape(shape []int64, limits Limits) error {
	if len(shape) > limits.Dimensions {
		return Exhausted("dimensions in a tensor", limits.Dimensions)
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

func (d *decoder) appendInfo(list *[]ValueInfo, message []byte) error {
	if len(*list) >= d.limits.Tensors {
		return Exhausted("declared tensors", d.limits.Tensors)
	}
	var info ValueInfo
	err := fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			info.Name, err = d.text(f)
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
		return Within(err, "tensor %q", info.Name)
	}
	*list = append(*list, info)
	return nil
}

func (d *decoder) tensorType(info *ValueInfo, message []byte) error {
	return fields(message, func(f field) error {
		switch f.number {
		case 1:
			info.Kind, _ = ElementType(f.bits)
		case 2:
			info.Shape = true
			return fields(f.bytes, func(f field) error {
				if f.number != 1 {
					return nil
				}
				if len(info.Dims) >= d.limits.Dimensions {
					return Exhausted("dimensions in a tensor", d.limits.Dimensions)
				}
				one := dimension{Size: -1}
				err := fields(f.bytes, func(f field) (err error) {
					switch f.number {
					case 1:
						if one.Size = int64(f.bits); one.Size < 1 {
							written := one.Size
							one.Size, one.Written = -1, &written
						}
					case 2:
						one.Name, err = d.text(f)
					}
					return err
				})
				info.Dims = append(info.Dims, one)
				return err
			})
		}
		return nil
	})
}
