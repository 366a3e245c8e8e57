package document

import (
	"encoding/binary"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"

	"google.golang.org/protobuf/encoding/protowire"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// What a skeleton keeps of the numbers in a file: few ones, which may be shapes, axes,
// bounds and scales.
const (
	keptIntegers = 64
	keptFloats   = 8
	keptText     = 64
)

// Skeleton is the model without its weights and names: the operators, how they are
// connected, and the shapes of what was trained. [Fill] makes it a model again that
// takes as long. The error is [problem.Invalid] where weights are not in initializers:
// in attributes, in graphs within the graph, or in another file.
func Skeleton(file []byte) ([]byte, error) {
	s := skeleton{tensors: map[string]string{"": ""}, sizes: map[string]string{}}
	return rewrite(file, func(out []byte, f field) ([]byte, error) {
		switch f.number {
		case 1, 8: // versions of the format and of the operators
			return f.append(out), nil
		case 7:
			return within(out, f, s.graph)
		case 25:
			return nil, problem.New(problem.Invalid, "the model has functions of its own")
		}
		return out, nil
	})
}

// skeleton renames what the user named, the same everywhere.
type skeleton struct{ tensors, sizes map[string]string }

func (s skeleton) graph(out []byte, f field) ([]byte, error) {
	switch f.number {
	case 1:
		return within(out, f, s.node)
	case 2:
		return appendText(out, 2, "skeleton"), nil
	case 5:
		return s.tensor(out, f)
	case 11, 12, 13:
		return within(out, f, s.info)
	case 15:
		return nil, problem.New(problem.Invalid, "the model has sparse initializers")
	}
	return out, nil
}

func (s skeleton) node(out []byte, f field) ([]byte, error) {
	switch f.number {
	case 1, 2:
		return appendText(out, f.number, renamed(s.tensors, "t", string(f.bytes))), nil
	case 4, 7:
		return f.append(out), nil
	case 5:
		return within(out, f, s.attribute)
	}
	return out, nil
}

func (s skeleton) attribute(out []byte, f field) ([]byte, error) {
	const weights = "the model has weights, or graphs of its own, in attributes of operators"
	switch f.number {
	case 1, 2, 3, 8, 20:
		return f.append(out), nil
	case 4:
		if len(f.bytes) > keptText {
			return nil, problem.New(problem.Invalid, "%s", weights)
		}
		return f.append(out), nil
	case 5:
		return s.tensor(out, f)
	case 7:
		if f.count(4) > keptFloats {
			return nil, problem.New(problem.Invalid, "%s", weights)
		}
		return f.append(out), nil
	case 13, 21: // words about it
		return out, nil
	}
	return nil, problem.New(problem.Invalid, "%s", weights)
}

// tensor keeps the shape, and the numbers where they are few.
func (s skeleton) tensor(out []byte, f field) ([]byte, error) {
	about, err := describe(f.bytes)
	if err != nil {
		return nil, err
	}
	if about.outside {
		return nil, problem.New(problem.Invalid, "the model has weights in another file")
	}
	return within(out, f, func(out []byte, f field) ([]byte, error) {
		switch f.number {
		case 1, 2:
			return f.append(out), nil
		case 8:
			return appendText(out, 8, renamed(s.tensors, "t", string(f.bytes))), nil
		case 4, 5, 7, 9, 10, 11:
			if about.count <= about.kept() {
				return f.append(out), nil
			}
		}
		return out, nil
	})
}

// info renames an input or an output and the sizes that it leaves open.
func (s skeleton) info(out []byte, f field) ([]byte, error) {
	switch f.number {
	case 1:
		return appendText(out, 1, renamed(s.tensors, "t", string(f.bytes))), nil
	case 2:
		return within(out, f, s.typed)
	}
	return out, nil
}

func (s skeleton) typed(out []byte, f field) ([]byte, error) {
	switch f.number {
	case 1: // a tensor, or the kind of its elements, or the number that a dimension is
		if f.kind == protowire.BytesType {
			return within(out, f, s.typed)
		}
		return f.append(out), nil
	case 2: // a shape, or the name of a dimension
		return within(out, f, s.dimensions)
	}
	return out, nil
}

func (s skeleton) dimensions(out []byte, f field) ([]byte, error) {
	if f.number != 1 {
		return out, nil
	}
	return within(out, f, func(out []byte, f field) ([]byte, error) {
		switch f.number {
		case 1:
			return f.append(out), nil
		case 2:
			name := string(f.bytes)
			if name == "N" || strings.Contains(strings.ToLower(name), "batch") {
				return appendText(out, 2, "batch"), nil
			}
			return appendText(out, 2, renamed(s.sizes, "d", name)), nil
		}
		return out, nil
	})
}

func renamed(names map[string]string, letter, name string) string {
	short, ok := names[name]
	if !ok {
		short = letter + strconv.Itoa(len(names))
		names[name] = short
	}
	return short
}

// stored is what a TensorProto says of itself.
type stored struct {
	shape   []int64
	code    uint64
	count   int64
	data    bool // whether there are numbers
	outside bool
}

func describe(message []byte) (one stored, err error) {
	err = fields(message, func(f field) (err error) {
		switch f.number {
		case 1:
			one.shape, err = f.integers(one.shape, 64)
		case 2:
			one.code = f.bits
		case 4, 5, 6, 7, 9, 10, 11:
			one.data = true
		case 13, 14:
			one.outside = one.outside || f.number == 13 || f.bits == 1
		}
		return err
	})
	if slices.ContainsFunc(one.shape, func(size int64) bool { return size < 0 }) {
		return one, problem.New(problem.Invalid, "a tensor has the shape %v", one.shape)
	}
	one.count = graph.Product(one.shape...)
	return one, err
}

// kept is how many numbers of the kind a skeleton keeps.
func (t stored) kept() int64 {
	switch t.code {
	case 6, 7, 12, 13: // integers of 32 and 64 bits
		return keptIntegers
	case 1, 10, 11, 16:
		return keptFloats
	}
	return 1 // a zero point
}

// Fill gives a skeleton numbers where its weights were, at most so many bytes of them.
// They are such that what flows through stays finite and is no denormal number, with
// which processors are slow; integers are 0, which every table has.
func Fill(skeleton []byte, most int64) ([]byte, error) {
	filled := filler{left: most, random: rand.New(rand.NewPCG(1, 2))}
	return rewrite(skeleton, func(out []byte, f field) ([]byte, error) {
		if f.number != 7 {
			return f.append(out), nil
		}
		return within(out, f, filled.graph)
	})
}

type filler struct {
	left   int64
	random *rand.Rand
}

func (w *filler) graph(out []byte, f field) ([]byte, error) {
	switch f.number {
	case 1:
		return within(out, f, func(out []byte, f field) ([]byte, error) {
			if f.number != 5 {
				return f.append(out), nil
			}
			return within(out, f, func(out []byte, f field) ([]byte, error) {
				if f.number != 5 {
					return f.append(out), nil
				}
				return w.tensor(out, f)
			})
		})
	case 5:
		return w.tensor(out, f)
	}
	return f.append(out), nil
}

func (w *filler) tensor(out []byte, f field) ([]byte, error) {
	about, err := describe(f.bytes)
	_, width := ElementType(about.code)
	switch {
	case err != nil:
		return nil, err
	case about.data || about.count == 0:
		return f.append(out), nil
	case width == 0:
		return nil, problem.New(problem.Invalid, "the skeleton has weights of type %d, which is not known", about.code)
	case about.count > w.left/int64(width):
		return nil, problem.New(problem.Exhausted, "the weights need more than the memory that they may take")
	}
	w.left -= about.count * int64(width)
	raw := w.numbers(about, width)
	out = protowire.AppendTag(out, f.number, protowire.BytesType)
	out = protowire.AppendVarint(out, uint64(len(f.bytes)+protowire.SizeTag(9)+protowire.SizeBytes(len(raw))))
	out = append(out, f.bytes...)
	out = protowire.AppendTag(out, 9, protowire.BytesType)
	return protowire.AppendBytes(out, raw), nil
}

// numbers are as weights are at the start of a training: of matrices and filters with a
// variance of one over the inputs, of scales and variances around 1.
func (w *filler) numbers(t stored, width int) []byte {
	raw := make([]byte, t.count*int64(width))
	low, high := 0.5, 1.5
	if len(t.shape) > 1 {
		high = math.Sqrt(3 * float64(t.shape[0]) / float64(t.count))
		low = -high
	}
	next := func() float64 { return low + (high-low)*w.random.Float64() }
	switch t.code {
	case 1:
		for at := 0; at < len(raw); at += 4 {
			binary.LittleEndian.PutUint32(raw[at:], math.Float32bits(float32(next())))
		}
	case 11:
		for at := 0; at < len(raw); at += 8 {
			binary.LittleEndian.PutUint64(raw[at:], math.Float64bits(next()))
		}
	case 16: // the upper half of a float32
		for at := 0; at < len(raw); at += 2 {
			binary.LittleEndian.PutUint16(raw[at:], uint16(math.Float32bits(float32(next()))>>16))
		}
	case 10:
		for at := 0; at < len(raw); at += 2 {
			binary.LittleEndian.PutUint16(raw[at:], half(float32(next())))
		}
	case 2, 3:
		for at := range raw {
			raw[at] = byte(w.random.Uint32())
		}
	}
	return raw
}

// half is a number as float16, 0 where it is too small for that.
func half(x float32) uint16 {
	bits := math.Float32bits(x)
	exponent := int(bits>>23&0xff) - 127 + 15
	if exponent <= 0 {
		return 0
	}
	return uint16(bits>>16&0x8000) | uint16(exponent<<10) | uint16(bits>>13&0x3ff)
}

// rewrite makes a message anew of what each field becomes.
func rewrite(message []byte, each func(out []byte, f field) ([]byte, error)) (out []byte, err error) {
	out = make([]byte, 0, min(len(message), 1<<16))
	err = fields(message, func(f field) (err error) {
		out, err = each(out, f)
		return err
	})
	return out, err
}

// within appends the field, which is a message, with that made anew.
func within(out []byte, f field, each func(out []byte, f field) ([]byte, error)) ([]byte, error) {
	inner, err := rewrite(f.bytes, each)
	if err != nil {
		return nil, err
	}
	return protowire.AppendBytes(protowire.AppendTag(out, f.number, protowire.BytesType), inner), nil
}

func appendText(out []byte, number protowire.Number, text string) []byte {
	return protowire.AppendString(protowire.AppendTag(out, number, protowire.BytesType), text)
}

// append appends the field as it was.
func (f field) append(out []byte) []byte {
	out = protowire.AppendTag(out, f.number, f.kind)
	switch f.kind {
	case protowire.VarintType:
		return protowire.AppendVarint(out, f.bits)
	case protowire.Fixed32Type:
		return protowire.AppendFixed32(out, uint32(f.bits))
	case protowire.Fixed64Type:
		return protowire.AppendFixed64(out, f.bits)
	case protowire.BytesType, protowire.StartGroupType, protowire.EndGroupType:
	}
	return protowire.AppendBytes(out, f.bytes)
}
