package document

import (
	"encoding/binary"
	"errors"
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/internal/problem"
)

// Model is what is read of a ModelProto.
type Model struct {
	Name    string
	Nodes   []Node
	Stored  []Stored
	inputs  []ValueInfo
	Outputs []ValueInfo
	Infos   []ValueInfo
}

// OpenInputs are the inputs that no initializer fills: older files list both.
func (m Model) OpenInputs() []ValueInfo {
	filled := map[string]bool{}
	for _, one := range m.Stored {
		filled[one.Name] = true
	}
	return slices.DeleteFunc(slices.Clone(m.inputs), func(info ValueInfo) bool { return filled[info.Name] })
}

// Node is what is read of a NodeProto.
type Node struct {
	Name, Domain, Kind string
	Inputs, Outputs    []string
	Attributes         map[string]*attribute
}

// Named is the name of a node, or one made of its kind and place.
func (n Node) Named(index int) string {
	if n.Name != "" {
		return n.Name
	}
	return fmt.Sprintf("%s.%d", n.Kind, index)
}

// Attribute is the one with the name, empty where there is none.
func (n Node) Attribute(name string) attribute {
	if one, ok := n.Attributes[name]; ok {
		return *one
	}
	return attribute{}
}

// HasGraph says whether the node runs graphs of its own, as If, Loop and Scan do.
func (n Node) HasGraph() bool {
	for _, one := range n.Attributes {
		if one.Subgraph {
			return true
		}
	}
	return false
}

// attribute is what is read of an AttributeProto.
type attribute struct {
	Integer  int64
	Float    float64
	Text     string
	Integers []int64 // the first ones
	Floats   []float64
	Count    int // of integers, floats and texts, kept or not
	// Runs are how many integers in a row are equal, of the first 65,536 rows.
	Runs     []int64
	last     int64
	Tensor   *Stored
	Subgraph bool
	Is       attributeKind
}

// mostRuns bounds the rows of equal integers.
const mostRuns = 1 << 16

// take adds an integer, which is kept if it is one of the first.
func (a *attribute) take(number int64, most int) {
	if len(a.Integers) < most {
		a.Integers = append(a.Integers, number)
	}
	switch same := a.Count > 0 && number == a.last; {
	case same && len(a.Runs) > 0:
		a.Runs[len(a.Runs)-1]++
	case len(a.Runs) < mostRuns:
		a.Runs = append(a.Runs, 1)
	}
	a.Count, a.last = a.Count+1, number
}

// attributeKind says which value an attribute has.
type attributeKind int

const (
	isOther attributeKind = iota
	IsInteger
	IsFloat
	IsText
	IsIntegers
)

// Stored is what is read of a TensorProto: no more values than are followed.
type Stored struct {
	Name    string
	Kind    graph.Type
	Shape   []int64
	Numbers []float64 // nil if they were not read
	Outside bool      // whether the values are in another file
}

// ValueInfo is what is read of a ValueInfoProto.
type ValueInfo struct {
	Name  string
	Kind  graph.Type
	Dims  []dimension
	Shape bool // whether there is one
}

// dimension is a fixed size, or an open one: -1 and perhaps a name.
type dimension struct {
	Size int64
	Name string
	// Written is the size in the file where it is zero or negative, which some
	// write for an open one.
	Written *int64
}

// Open says how the file leaves a dimension open.
func (d dimension) Open() string {
	switch {
	case d.Written != nil:
		return fmt.Sprintf("%d in the file, which is no size", *d.Written)
	case d.Name != "":
		return "symbolic"
	}
	return "not given"
}

// ElementType is that of a number of TensorProto.DataType, and how many bytes
// an element has in raw data.
func ElementType(code uint64) (kind graph.Type, width int) {
	switch code {
	case 1:
		return graph.Float32, 4
	case 2, 3:
		return graph.Int8, 1
	case 6, 12:
		return graph.Int32, 4
	case 7, 13:
		return graph.Int64, 8
	case 9:
		return graph.Bool, 1
	case 10, 16:
		return graph.Float16, 2
	case 11:
		return graph.Float64, 8
	case 17, 18, 19, 20: // 8 bits of floating point
		return graph.Int8, 1
	case 21, 22: // 4 bits, two in a byte
		return graph.Int8, 0
	}
	return graph.Other, 0
}

// values is where the numbers of a tensor are on the wire.
type values struct {
	code     uint64
	raw      []byte
	floats   []byte
	doubles  []byte
	loose    []float64 // unpacked floats and doubles
	integers []int64
	outside  bool // in another file
}

// numbers are the values of a tensor, nil where they are not there or of a type
// in which no shapes are.
func (v values) numbers(count int) []float64 {
	_, width := ElementType(v.code)
	var list []float64
	switch {
	case v.outside:
		return nil
	case len(v.raw) > 0:
		if width == 0 || len(v.raw) != count*width {
			return nil
		}
		for i := range count {
			list = append(list, rawNumber(v.code, v.raw[i*width:(i+1)*width]))
		}
	case len(v.floats) > 0:
		for i := 0; i+4 <= len(v.floats); i += 4 {
			list = append(list, float64(math.Float32frombits(binary.LittleEndian.Uint32(v.floats[i:]))))
		}
	case len(v.doubles) > 0:
		for i := 0; i+8 <= len(v.doubles); i += 8 {
			list = append(list, math.Float64frombits(binary.LittleEndian.Uint64(v.doubles[i:])))
		}
	case len(v.loose) > 0:
		list = v.loose
	default:
		list = make([]float64, 0, len(v.integers))
		for _, integer := range v.integers {
			list = append(list, float64(integer))
		}
	}
	if len(list) != count {
		return nil
	}
	return list
}

// rawNumber is one element of raw data; NaN for types that hold no shapes.
func rawNumber(code uint64, raw []byte) float64 {
	switch code {
	case 1:
		return float64(math.Float32frombits(binary.LittleEndian.Uint32(raw)))
	case 2, 9:
		return float64(raw[0])
	case 3:
		return float64(int8(raw[0]))
	case 6:
		return float64(int32(binary.LittleEndian.Uint32(raw)))
	case 12:
		return float64(binary.LittleEndian.Uint32(raw))
	case 7:
		return float64(int64(binary.LittleEndian.Uint64(raw)))
	case 13:
		return float64(binary.LittleEndian.Uint64(raw))
	case 11:
		return math.Float64frombits(binary.LittleEndian.Uint64(raw))
	}
	return math.NaN()
}

// Within says where in the file an error is, and keeps what kind it is.
func Within(err error, format string, args ...any) error {
	code := problem.Invalid
	if known, ok := errors.AsType[*problem.Error](err); ok {
		code = known.Code
	}
	return problem.New(code, format+": %w", append(args, err)...)
}

// Exhausted is the error of a limit.
func Exhausted(what string, limit int) error {
	return problem.New(problem.Exhausted, "the file has more than %d %s: that is more than is read", limit, what)
}
