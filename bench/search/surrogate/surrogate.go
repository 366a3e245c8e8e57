// Package surrogate predicts what a training gives: the neural networks of YAHPO Gym,
// which learned it from recorded trainings.
package surrogate

import (
	"encoding/base64"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"io"
	"math"
	"slices"
)

// Network is a neural network that predicts what a training gives, read from
// the plain form of an ONNX graph: its operations in order, on vectors, since
// one training is asked for at a time. Shapes that follow from the weights are
// computed like everything else.
type Network struct {
	weights map[string]tensor
	nodes   []operation
	output  string
}

// tensor is a vector, or a matrix with rows.
type tensor struct {
	data  []float32
	rows  int  // 0 for a vector
	whole bool // of integers: they are divided with the rest left out
}

type operation struct {
	Op      string   `json:"op"`
	Inputs  []string `json:"inputs"`
	Outputs []string `json:"outputs"`
	Attrs   struct {
		Value   *packed `json:"value"`
		Epsilon float64 `json:"epsilon"`
	} `json:"attrs"`
}

// packed is a tensor as the file has it.
type packed struct {
	Type  string `json:"dtype"`
	Shape []int  `json:"shape"`
	Text  string `json:"b64"`
}

func (p packed) unpack() (tensor, error) {
	raw, err := base64.StdEncoding.DecodeString(p.Text)
	if err != nil {
		return tensor{}, err
	}
	var t tensor
	switch p.Type {
	case "f32":
		for ; len(raw) >= 4; raw = raw[4:] {
			t.data = append(t.data, math.Float32frombits(binary.LittleEndian.Uint32(raw)))
		}
	case "i64":
		for ; len(raw) >= 8; raw = raw[8:] {
			t.data = append(t.data, float32(int64(binary.LittleEndian.Uint64(raw))))
		}
		t.whole = true
	default:
		return tensor{}, fmt.Errorf("a tensor of %s cannot be read", p.Type)
	}
	if len(p.Shape) == 2 {
		t.rows = p.Shape[0]
	}
	return t, nil
}

// Read reads a network.
func Read(content io.Reader) (*Network, error) {
	var file struct {
		Weights map[string]packed `json:"initializers"`
		Nodes   []operation       `json:"nodes"`
		Output  string            `json:"onnx_output"`
	}
	if err := json.NewDecoder(content).Decode(&file); err != nil {
		return nil, err
	}
	n := &Network{weights: map[string]tensor{}, output: file.Output}
	for name, one := range file.Weights {
		t, err := one.unpack()
		if err != nil {
			return nil, err
		}
		n.weights[name] = t
	}
	for _, node := range file.Nodes {
		if node.Op != "Constant" {
			n.nodes = append(n.nodes, node)
			continue
		}
		t, err := node.Attrs.Value.unpack()
		if err != nil {
			return nil, err
		}
		n.weights[node.Outputs[0]] = t
	}
	return n, nil
}

// Predict returns the network's outputs for its two inputs, the categories'
// codes and the numbers.
func (n *Network) Predict(categories, numbers []float32) ([]float32, error) {
	known := map[string]tensor{"x_cat": {data: categories}, "x_cont": {data: numbers}}
	for _, node := range n.nodes {
		var in []tensor
		for _, name := range node.Inputs {
			t, ok := known[name]
			if !ok {
				t = n.weights[name]
			}
			in = append(in, t)
		}
		out, err := node.compute(in)
		if err != nil {
			return nil, err
		}
		known[node.Outputs[0]] = tensor{data: out, whole: node.Op == "Shape" || in[0].whole}
	}
	return known[n.output].data, nil
}

func (o operation) compute(in []tensor) ([]float32, error) {
	first := in[0].data
	switch o.Op {
	case "Cast", "Unsqueeze":
		return first, nil
	case "Log", "Exp", "Relu", "Sigmoid":
		return each(first, o.Op), nil
	case "Add", "Sub", "Mul", "Div":
		return pairs(in[0], in[1], o.Op), nil
	case "Concat":
		var joined []float32
		for _, t := range in {
			joined = append(joined, t.data...)
		}
		return joined, nil
	case "Shape":
		return []float32{1, float32(len(first))}, nil
	case "Gather":
		at := int(in[1].data[0])
		if rows := in[0].rows; rows > 0 {
			width := len(first) / rows
			return first[at*width : (at+1)*width], nil
		}
		return []float32{first[(at+len(first))%len(first)]}, nil
	case "Slice":
		return first[int(in[1].data[0]):int(in[2].data[0])], nil
	case "Gemm":
		return affine(first, in[1], in[2].data), nil
	case "BatchNormalization":
		return normalized(in, o.Attrs.Epsilon), nil
	}
	return nil, fmt.Errorf("the operation %s is not known", o.Op)
}

func each(x []float32, op string) []float32 {
	y := make([]float32, len(x))
	for i, v := range x {
		switch op {
		case "Log":
			y[i] = float32(math.Log(float64(v)))
		case "Exp":
			y[i] = float32(math.Exp(float64(v)))
		case "Relu":
			y[i] = max(v, 0)
		case "Sigmoid":
			y[i] = float32(1 / (1 + math.Exp(-float64(v))))
		}
	}
	return y
}

// pairs computes element by element; a single one goes with all of the other.
func pairs(x, y tensor, op string) []float32 {
	z := make([]float32, max(len(x.data), len(y.data)))
	for i := range z {
		a, b := x.data[min(i, len(x.data)-1)], y.data[min(i, len(y.data)-1)]
		switch op {
		case "Add":
			z[i] = a + b
		case "Sub":
			z[i] = a - b
		case "Mul":
			z[i] = a * b
		case "Div":
			if z[i] = a / b; x.whole && y.whole {
				z[i] = float32(math.Trunc(float64(z[i])))
			}
		}
	}
	return z
}

// affine is the weights times x, plus the bias.
func affine(x []float32, weights tensor, bias []float32) []float32 {
	y := slices.Clone(bias)
	n := len(x)
	for i := range y {
		row := weights.data[i*n : (i+1)*n]
		var a, b, c, d float32
		k := 0
		for ; k+4 <= len(row) && k+4 <= len(x); k += 4 {
			a += row[k] * x[k]
			b += row[k+1] * x[k+1]
			c += row[k+2] * x[k+2]
			d += row[k+3] * x[k+3]
		}
		for ; k < n; k++ {
			a += row[k] * x[k]
		}
		y[i] += (a + b) + (c + d)
	}
	return y
}

// normalized shifts and scales by what the network saw in its own training:
// inputs are x, scale, shift, mean and variance.
func normalized(in []tensor, epsilon float64) []float32 {
	y := make([]float32, len(in[0].data))
	for i, x := range in[0].data {
		deviation := float32(math.Sqrt(float64(in[4].data[i]) + epsilon))
		y[i] = (x-in[3].data[i])/deviation*in[1].data[i] + in[2].data[i]
	}
	return y
}
