package onnx_test

import (
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
)

// names of inputs and outputs in one text.
func names(list ...string) []string { return list }

func TestShapesAndCostsOfOperators(t *testing.T) {
	for _, test := range []struct {
		name       string
		kind       string
		shape      []int64
		stored     [][]byte
		inputs     []string
		attributes [][]byte
		want       []int64
		operations int64
		class      graph.Class
	}{
		{"padded convolution", "Conv", []int64{1, 3, 8, 9}, [][]byte{tensor("w", 1, 4, 3, 3, 2)}, names("x", "w"), [][]byte{attribute("pads", 1, 0, 1, 0), attribute("strides", 2, 1)}, []int64{1, 4, 4, 8}, 2 * 32 * 4 * 18, graph.Convolution},
		{"same convolution", "Conv", []int64{1, 3, 7, 7}, [][]byte{tensor("w", 1, 4, 3, 3, 3)}, names("x", "w"), [][]byte{word("auto_pad", "SAME_UPPER"), attribute("strides", 2, 2)}, []int64{1, 4, 4, 4}, 2 * 16 * 4 * 27, graph.Convolution},
		{"depthwise", "Conv", []int64{1, 6, 5}, [][]byte{tensor("w", 1, 6, 1, 3)}, names("x", "w"), [][]byte{number("group", 6)}, []int64{1, 6, 3}, 2 * 18 * 3, graph.Depthwise},
		{"integer convolution", "ConvInteger", []int64{1, 2, 5}, [][]byte{tensor("w", 3, 4, 2, 3)}, names("x", "w"), nil, []int64{1, 4, 3}, 2 * 12 * 6, graph.Convolution},
		{"transposed with a shape", "ConvTranspose", []int64{1, 2, 4, 4}, [][]byte{tensor("w", 1, 2, 3, 2, 2)}, names("x", "w"), [][]byte{attribute("output_shape", 8, 8), attribute("strides", 2, 2)}, []int64{1, 3, 8, 8}, 2 * 32 * 3 * 4, graph.Convolution},
		{"product with a vector", "MatMul", []int64{1, 5, 6}, [][]byte{tensor("w", 1, 6)}, names("x", "w"), nil, []int64{1, 5}, 60, graph.Linear},
		{"quantized product", "QLinearMatMul", []int64{1, 6}, [][]byte{tensor("w", 3, 6, 4), tensor("s", 1), tensor("z", 3)}, names("x", "s", "z", "w", "s", "z", "s", "z"), nil, []int64{1, 4}, 48, graph.Linear},
		{"transposed Gemm", "Gemm", []int64{1, 6}, [][]byte{tensor("w", 1, 4, 6), tensor("b", 1, 4)}, names("x", "w", "b"), [][]byte{number("transB", 1)}, []int64{1, 4}, 48, graph.Linear},
		{"einsum", "Einsum", []int64{1, 5, 6}, [][]byte{tensor("w", 1, 6, 7)}, names("x", "w"), [][]byte{word("equation", "bij, jk -> bki")}, []int64{1, 7, 5}, 2 * 210, graph.Linear},
		{"softmax", "Softmax", []int64{1, 4}, nil, names("x"), nil, []int64{1, 4}, 20, graph.Activation},
		{"comparison", "Less", []int64{1, 4}, [][]byte{tensor("w", 1, 3, 1)}, names("x", "w"), nil, []int64{3, 4}, 12, graph.Elementwise},
		{"max pool, VALID", "MaxPool", []int64{1, 2, 7}, nil, names("x"), [][]byte{attribute("kernel_shape", 3), attribute("strides", 2), word("auto_pad", "VALID")}, []int64{1, 2, 3}, 18, graph.Pooling},
		{"mean over axes", "ReduceMean", []int64{1, 2, 3, 4}, nil, names("x"), [][]byte{attribute("axes", 2, -1), number("keepdims", 0)}, []int64{1, 2}, 24, graph.Elementwise},
		{"sum over an input's axes", "ReduceSum", []int64{1, 2, 3}, [][]byte{list("a", 1)}, names("x", "a"), nil, []int64{1, 1, 3}, 6, graph.Elementwise},
		{"sum over nothing", "ReduceSum", []int64{1, 2, 3}, nil, names("x"), [][]byte{number("noop_with_empty_axes", 1)}, []int64{1, 2, 3}, 6, graph.Elementwise},
		{"arg max", "ArgMax", []int64{1, 2, 3}, nil, names("x"), [][]byte{number("axis", 2), number("keepdims", 0)}, []int64{1, 2}, 6, graph.Elementwise},
		{"top k", "TopK", []int64{1, 9}, [][]byte{list("k", 3)}, names("x", "k"), nil, []int64{1, 3}, 9, graph.Elementwise},
		{"reshape with an open size", "Reshape", []int64{1, 4, 6}, [][]byte{list("s", 0, -1, 3)}, names("x", "s"), nil, []int64{1, 8, 3}, 0, graph.Movement},
		{"flatten", "Flatten", []int64{1, 4, 6}, nil, names("x"), [][]byte{number("axis", -1)}, []int64{4, 6}, 0, graph.Movement},
		{"squeeze all", "Squeeze", []int64{1, 4, 1}, nil, names("x"), nil, []int64{4}, 0, graph.Movement},
		{"squeeze one", "Squeeze", []int64{1, 4, 1}, [][]byte{list("a", -1)}, names("x", "a"), nil, []int64{1, 4}, 0, graph.Movement},
		{"unsqueeze", "Unsqueeze", []int64{1, 4}, nil, names("x"), [][]byte{attribute("axes", 0, 3)}, []int64{1, 1, 4, 1}, 0, graph.Movement},
		{"transpose", "Transpose", []int64{1, 4, 6}, nil, names("x"), [][]byte{attribute("perm", 0, 2, 1)}, []int64{1, 6, 4}, 0, graph.Movement},
		{"concat", "Concat", []int64{1, 4}, nil, names("x", "x"), [][]byte{number("axis", -1)}, []int64{1, 8}, 0, graph.Movement},
		{"split", "Split", []int64{1, 9}, [][]byte{list("p", 9)}, names("x", "p"), [][]byte{number("axis", 1)}, []int64{1, 9}, 0, graph.Movement},
		{"slice", "Slice", []int64{1, 9}, [][]byte{list("from", 1), list("to", 1<<62), list("axes", 1), list("by", 3)}, names("x", "from", "to", "axes", "by"), nil, []int64{1, 3}, 0, graph.Movement},
		{"slice backwards", "Slice", []int64{1, 9}, [][]byte{list("from", -1), list("to", -100), list("axes", 1), list("by", -2)}, names("x", "from", "to", "axes", "by"), nil, []int64{1, 5}, 0, graph.Movement},
		{"slice from beyond the end", "Slice", []int64{1, 9}, [][]byte{list("from", 100), list("to", -100), list("axes", 1), list("by", -1)}, names("x", "from", "to", "axes", "by"), nil, []int64{1, 9}, 0, graph.Movement},
		{"slice of version 1", "Slice", []int64{1, 9}, nil, names("x"), [][]byte{attribute("axes", 1), attribute("starts", 2), attribute("ends", -2)}, []int64{1, 5}, 0, graph.Movement},
		{"gather", "Gather", []int64{1, 9}, [][]byte{list("i", 0, 2)}, names("x", "i"), [][]byte{number("axis", 1)}, []int64{1, 2}, 0, graph.Movement},
		{"embedding", "Gather", []int64{1, 9}, [][]byte{tensor("w", 1, 50, 8)}, names("w", "x"), nil, []int64{1, 9, 8}, 0, graph.Movement},
		{"expand", "Expand", []int64{1, 4}, [][]byte{list("s", 3, 1)}, names("x", "s"), nil, []int64{3, 4}, 0, graph.Movement},
		{"tile", "Tile", []int64{1, 4}, [][]byte{list("s", 3, 2)}, names("x", "s"), nil, []int64{3, 8}, 0, graph.Movement},
		{"pad", "Pad", []int64{1, 4}, [][]byte{list("p", 0, 1, 0, 2)}, names("x", "p"), nil, []int64{1, 7}, 0, graph.Movement},
		{"resize by sizes", "Resize", []int64{1, 2, 4, 4}, [][]byte{list("s", 1, 2, 8, 8)}, names("x", "", "", "s"), nil, []int64{1, 2, 8, 8}, 0, graph.Movement},
		{"bilinear", "Resize", []int64{1, 2, 4, 4}, [][]byte{list("s", 1, 2, 8, 8)}, names("x", "", "", "s"), [][]byte{word("mode", "linear")}, []int64{1, 2, 8, 8}, 2 * 4 * 128, graph.Elementwise},
		{"depth to space", "DepthToSpace", []int64{1, 8, 3, 3}, nil, names("x"), [][]byte{number("blocksize", 2)}, []int64{1, 2, 6, 6}, 0, graph.Movement},
		{"space to depth", "SpaceToDepth", []int64{1, 2, 6, 6}, nil, names("x"), [][]byte{number("blocksize", 2)}, []int64{1, 8, 3, 3}, 0, graph.Movement},
		{"cast", "Cast", []int64{1, 4}, nil, names("x"), [][]byte{number("to", 10)}, []int64{1, 4}, 4, graph.Elementwise},
		{"quantize", "QuantizeLinear", []int64{1, 4, 3}, [][]byte{tensor("s", 1, 4), tensor("z", 3, 4)}, names("x", "s", "z"), nil, []int64{1, 4, 3}, 24, graph.Elementwise},
	} {
		t.Run(test.name, func(t *testing.T) {
			parts := append(slices.Clone(test.stored), info(11, "x", 1, test.shape...), node(test.kind, test.inputs, names("y"), test.attributes...), info(12, "y", 1))
			g, err := onnx.Read(file(parts...), onnx.Options{})
			if err != nil {
				t.Fatal(err)
			}
			op := g.Operators[0]
			if !slices.Equal(g.Outputs[0].Shape, test.want) || op.Operations != test.operations || op.Class != test.class {
				t.Errorf("%s of shape %v with %d operations, want %s, %v, %d", op.Class, g.Outputs[0].Shape, op.Operations, test.class, test.want, test.operations)
			}
		})
	}
}

// What exporters compute of shapes is computed when the file is read: the graph
// has one operator left.
func TestComputedShapesAreFolded(t *testing.T) {
	parts := [][]byte{
		info(11, "x", 1, -1, 6, 4), list("one", 1), list("two", 2), list("axis", 0), list("pair", 0, 1),
		node("Shape", names("x"), names("shape")),
		node("Gather", names("shape", "one"), names("six")),
		node("Div", names("six", "two"), names("three")),
		node("Slice", names("shape", "two", "axis2", "axis"), names("last")),
		node("ReduceProd", names("shape"), names("all"), number("keepdims", 1)),
		node("Div", names("all", "three"), names("rest")),
		node("Equal", names("three", "two"), names("same")),
		node("Where", names("same", "two", "three"), names("chosen")),
		node("Concat", names("chosen", "rest"), names("wanted"), number("axis", 0)),
		node("Reshape", names("x", "wanted"), names("y")),
		info(12, "y", 1),
	}
	parts = append(parts, list("axis2", 3))
	g, err := onnx.Read(file(parts...), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if !slices.Equal(g.Outputs[0].Shape, []int64{3, 8}) || len(g.Operators) != 1 {
		t.Errorf("%v after %d operators, want [3 8] after one", g.Outputs[0].Shape, len(g.Operators))
	}
}

func TestDequantizedWeightsAreStoredInEightBits(t *testing.T) {
	g, err := onnx.Read(file(tensor("q", 3, 6, 4), tensor("s", 1), tensor("z", 3), info(11, "x", 1, 1, 6),
		node("DequantizeLinear", names("q", "s", "z"), names("w")), node("MatMul", names("x", "w"), names("y")), info(12, "y", 1)), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if cost := graphtest.CostOf(g, 1); len(g.Operators) != 1 || cost.WeightBytes != 24 || cost.Parameters != 24 {
		t.Errorf("%d operators, %d bytes, %d parameters", len(g.Operators), cost.WeightBytes, cost.Parameters)
	}
}

func TestSplitInEqualParts(t *testing.T) {
	g, err := onnx.Read(file(info(11, "x", 1, 1, 9), node("Split", names("x"), names("a", "b"), number("axis", 1)),
		node("Relu", names("b"), names("y")), info(12, "y", 1)), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if shape := g.Tensors["b"].Shape; !slices.Equal(shape, []int64{1, 4}) {
		t.Errorf("the second part is %v", shape)
	}
}

func TestMoreOutputsThanOne(t *testing.T) {
	g, err := onnx.Read(file(info(11, "x", 1, -1, 5, 4), tensor("w", 1, 4),
		node("LayerNormalization", names("x", "w"), names("n", "mean", "deviation")), node("Dropout", names("n"), names("d", "mask")),
		node("Mul", names("d", "mean"), names("y")), info(12, "y", 1), info(12, "mask", 9)), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if mean, mask := g.Tensors["mean"], g.Tensors["mask"]; !slices.Equal(mean.Shape, []int64{1, 5, 1}) || mask.Type != graph.Bool || !slices.Equal(mask.Shape, []int64{1, 5, 4}) {
		t.Errorf("mean %v, mask %v", mean, mask)
	}
}

func TestTreesOfScikitLearn(t *testing.T) {
	// Two trees of three nodes: a comparison each, and an addition each.
	g, err := onnx.Read(file(info(11, "x", 1, -1, 5),
		node("TreeEnsembleRegressor", names("x"), names("y"), attribute("nodes_treeids", 0, 0, 0, 1, 1, 1), attribute("nodes_featureids", 1, 0, 0, 2, 0, 0)),
		info(12, "y", 1)), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if op := g.Operators[0]; op.Operations != 4 || op.Parameters != 6 || !slices.Equal(g.Outputs[0].Shape, []int64{1, 1}) {
		t.Errorf("%d operations, %d parameters, output %v", op.Operations, op.Parameters, g.Outputs[0].Shape)
	}
}
