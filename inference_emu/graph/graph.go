// Package graph answers: what does one inference of an architecture do, and
// what does that cost?
//
// A [Graph] is a model without its weights: operators in the order in which they
// can run, with the shapes of what flows between them. From the shapes follow,
// for each operator, the floating-point operations, the bytes read and written,
// and the parameters (Rocha, section 7.3.4: only what changes the architecture
// changes the inference, so that results are kept for each architecture).
//
// The package is pure. What reads a file into a graph is in inference_emu/onnx.
package graph

// Type is the type of a tensor's elements.
type Type string

// The element types that cost differently.
const (
	Float64 Type = "float64"
	Float32 Type = "float32"
	Float16 Type = "float16"
	Int64   Type = "int64"
	Int32   Type = "int32"
	Int8    Type = "int8" // signed or not, quantized
	Bool    Type = "bool"
	Other   Type = "other"
)

// Bytes is the size of one element; 4 where it is not known.
func (t Type) Bytes() int64 {
	switch t {
	case Float64, Int64:
		return 8
	case Float16:
		return 2
	case Int8, Bool:
		return 1
	}
	return 4
}

// Tensor is what flows between operators.
type Tensor struct {
	Name string `json:"name"`
	Type Type   `json:"type"`
	// Shape has the sizes for a batch of one sample.
	Shape []int64 `json:"shape"`
	// Batched says that the tensor grows with the batch; weights and constants
	// do not.
	Batched bool `json:"batched"`
}

// Elements is the number of elements for one sample, at most [Largest].
func (t Tensor) Elements() int64 { return Product(t.Shape...) }

// Bytes is the size for one sample, at most [Largest].
func (t Tensor) Bytes() int64 { return Product(t.Elements(), t.Type.Bytes()) }

// Class groups operators that use a machine in the same way.
type Class string

// The classes. Every kind of operator is in one of them.
const (
	Convolution   Class = "convolution"
	Depthwise     Class = "depthwise" // a convolution with a group for each channel
	Linear        Class = "linear"    // matrix products
	Recurrent     Class = "recurrent"
	Activation    Class = "activation"
	Normalization Class = "normalization"
	Pooling       Class = "pooling"
	Elementwise   Class = "elementwise"
	Movement      Class = "movement" // reshaping, concatenation, look-ups: bytes only
	Rest          Class = "other"
)

// Operator is one step of an inference and what it costs.
type Operator struct {
	Name string `json:"name"`
	// Kind is the ONNX name of the operator: Conv, Gemm, Relu.
	Kind  string `json:"kind"`
	Class Class  `json:"class"`
	Type  Type   `json:"type"` // of the output's elements
	// Inputs and Outputs name tensors that are computed, not weights.
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	// Operations are floating-point (or integer) operations for one sample, a
	// multiplication and an addition counting as two.
	Operations int64 `json:"operations"`
	// ReadBytes and WrittenBytes are of the tensors that are computed, for one
	// sample; WeightBytes are read once for a batch.
	ReadBytes    int64 `json:"read_bytes"`
	WrittenBytes int64 `json:"written_bytes"`
	WeightBytes  int64 `json:"weight_bytes"`
	Parameters   int64 `json:"parameters"`
	// Kernel, Stride and Groups are of convolutions and poolings; nil and 0
	// elsewhere.
	Kernel []int64 `json:"kernel,omitempty"`
	Stride []int64 `json:"stride,omitempty"`
	Groups int64   `json:"groups,omitempty"`
	// InChannels and OutChannels are of convolutions and matrix products.
	InChannels  int64 `json:"in_channels,omitempty"`
	OutChannels int64 `json:"out_channels,omitempty"`
	// Positions is at how many places of the output a kernel is applied, for one
	// sample.
	Positions int64 `json:"positions,omitempty"`
	// Weights are the inputs that the model brings along.
	Weights []Weight `json:"weights,omitempty"`
	// Attributes are the settings that make this another architecture and that
	// no other field has, as "name=value", sorted.
	Attributes []string `json:"attributes,omitempty"`
	// View says that the output is the memory of the input seen with another
	// shape: nothing is read or written.
	View bool `json:"view,omitempty"`
}

// Weight is an input of an operator that is stored with the model.
type Weight struct {
	// Name tells weights that several operators share; it does not enter the key.
	Name string `json:"name,omitempty"`
	// Position is the place among the operator's inputs, computed ones included.
	Position int     `json:"position"`
	Type     Type    `json:"type"` // as it is stored
	Shape    []int64 `json:"shape"`
	// Auxiliary values are stored but not learned: statistics of a batch
	// normalization, scales of quantization, indices. They are no parameters.
	Auxiliary bool `json:"auxiliary,omitempty"`
}

// Graph is an architecture.
type Graph struct {
	Name    string   `json:"name"`
	Inputs  []Tensor `json:"inputs"`
	Outputs []Tensor `json:"outputs"`
	// Tensors are all that are computed, the inputs among them, by name.
	Tensors   map[string]Tensor `json:"tensors,omitempty"`
	Operators []Operator        `json:"operators"`
	// FixedBatch is how many samples the file takes at a time, no more and no less;
	// 0 if it leaves that open. It is a property of the file, and not in the key.
	FixedBatch int64 `json:"fixed_batch,omitempty" minimum:"0"`
	// WeightsOutside says that the file refers to weights in other files.
	WeightsOutside bool `json:"-"`
}
