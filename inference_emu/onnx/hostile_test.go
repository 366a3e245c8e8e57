package onnx_test

import (
	"errors"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/inference_emu/onnx/document"
	"github.com/tandem-tune/tandem/internal/problem"
)

func TestFaultsNameTheNodeAndTheReason(t *testing.T) {
	input := info(11, "x", 1, 1, 6, 4)
	for name, test := range map[string]struct {
		file []byte
		want []string
		code problem.Code
	}{
		"empty":          {nil, []string{"not an ONNX file"}, problem.Invalid},
		"text":           {[]byte("epochs: 3\n"), []string{"not an ONNX file"}, problem.Invalid},
		"LiteRT":         {[]byte("\x1c\x00\x00\x00TFL3\x14\x00"), []string{"LiteRT", "tf2onnx", "trial.save_model"}, problem.Invalid},
		"PyTorch":        {[]byte("PK\x03\x04\x00\x00\x08\x08"), []string{"PyTorch or Keras", "trial.save_model"}, problem.Invalid},
		"Keras":          {[]byte("\x89HDF\r\n\x1a\n"), []string{"PyTorch or Keras", "trial.save_model"}, problem.Invalid},
		"cut off":        {open(t, "lenet5")[:9000], []string{"only a part"}, problem.Invalid},
		"unknown":        {file(input, node("Frobnicate", names("x"), names("y"))), []string{"Frobnicate", "not known", `"y"`, "shape_inference"}, problem.Invalid},
		"unknown domain": {file(input, message(1, text(4, "Relu"), text(7, "com.example"), text(1, "x"), text(2, "y"))), []string{"com.example.Relu"}, problem.Invalid},
		"subgraph":       {file(input, node("If", names("x"), names("y"), message(5, text(1, "then_branch"), message(6)))), []string{"(If)", "not known", "shape_inference"}, problem.Invalid},
		"open shape":     {file(input, node("Unique", names("x"), names("y")), info(12, "y", 1, -1)), []string{"Unique", "not known"}, problem.Invalid},
		"forward":        {file(input, node("Relu", names("z"), names("y"))), []string{`"z"`, "no node before it"}, problem.Invalid},
		"twice":          {file(input, node("Relu", names("x"), names("y")), node("Relu", names("x"), names("y"))), []string{"written already"}, problem.Invalid},
		"no output":      {file(input, info(12, "y", 1)), []string{`"y"`, "no node writes it"}, problem.Invalid},
		"groups":         {file(input, tensor("w", 1, 4, 6, 3), node("Conv", names("x", "w"), names("y"), number("group", 0))), []string{"(Conv)", "groups"}, problem.Invalid},
		"computed shape": {file(input, info(11, "s", 7, 2), node("Reshape", names("x", "s"), names("y"))), []string{`"s"`, "not known before"}, problem.Invalid},
		"fixed batch":    {file(input, list("s", 8, -1), node("Slice", names("x", "a", "b"), names("z")), list("a", 0, 1), list("b", 1, 6), node("Reshape", names("z", "s"), names("y"))), []string{"batch"}, problem.Invalid},
		"huge":           {file(info(11, "x", 1, 1<<30, 1<<30)), []string{`"x"`, "elements"}, problem.Exhausted},
		"huge repeats":   {file(input, list("s", 1<<40, 1<<40, 1<<40), node("Tile", names("x", "s"), names("y"))), []string{"(Tile)"}, problem.Invalid},
		"many dimensions": {file(info(11, "x", 1, slices.Repeat([]int64{1}, 17)...)), []string{"16 dimensions"},
			problem.Exhausted},
		"long name":    {file(info(11, strings.Repeat("x", 5000), 1, 1)), []string{"longer than 4096"}, problem.Invalid},
		"sparse":       {file(message(15)), []string{"sparse"}, problem.Invalid},
		"short weight": {file(message(5, text(8, "w"), integer(2, 1), integers(1, 2, 3), message(9, []byte("four")))), []string{`"w"`, "needs 24"}, problem.Invalid},
		"shape in another file": {file(input, message(5, text(8, "s"), integer(2, 7), integers(1, 2), integer(14, 1)),
			node("Reshape", names("x", "s"), names("y"))), []string{"another file"}, problem.Invalid},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := onnx.Read(test.file, onnx.Options{})
			var known *problem.Error
			if !errors.As(err, &known) || known.Code != test.code {
				t.Fatalf("error %v, want code %s", err, test.code)
			}
			for _, part := range test.want {
				if !strings.Contains(err.Error(), part) {
					t.Errorf("error %q does not say %q", err, part)
				}
			}
		})
	}
}

func TestLimits(t *testing.T) {
	relu := func(from, to string) []byte { return node("Relu", names(from), names(to)) }
	model := file(info(11, "x", 1, 1, 6), tensor("w", 1, 2), tensor("v", 1, 2), relu("x", "a"), relu("a", "b"), relu("b", "c"))
	if _, err := onnx.Read(model, onnx.Options{}); err != nil {
		t.Fatal(err)
	}
	for name, limits := range map[string]document.Limits{"bytes": {Bytes: 20}, "operators": {Nodes: 2}, "stored tensors": {Tensors: 1}, "elements": {Elements: 5}} {
		t.Run(name, func(t *testing.T) {
			_, err := onnx.Read(model, onnx.Options{Limits: limits})
			var known *problem.Error
			if !errors.As(err, &known) || !strings.Contains(err.Error(), name) && name != "elements" {
				t.Errorf("error %v", err)
			}
		})
	}
}

// A file of ONNX may have the bytes by which another format is known.
func TestAProducerMayBeCalledAsAnotherFormat(t *testing.T) {
	head := []byte("\x08\x07\x12\x04TFL3") // version 7, written by TFL3
	rest := file(info(11, "x", 1, 1, 6), node("Relu", names("x"), names("y")), info(12, "y", 1, 1, 6))
	if _, err := onnx.Read(append(head, rest...), onnx.Options{}); err != nil {
		t.Error(err)
	}
}

// Weights outside the file do not matter for what a model costs.
func TestWeightsMayBeInAnotherFile(t *testing.T) {
	g, err := onnx.Read(file(info(11, "x", 1, 1, 6), message(5, text(8, "w"), integer(2, 1), integers(1, 6, 3), integer(14, 1)),
		node("MatMul", names("x", "w"), names("y")), info(12, "y", 1)), onnx.Options{})
	if err != nil || graphtest.CostOf(g, 1).Parameters != 18 {
		t.Errorf("%v, %d parameters", err, graphtest.CostOf(g, 1).Parameters)
	}
}

func TestAnUnknownOperatorWithAShapeIsKept(t *testing.T) {
	g, err := onnx.Read(file(info(11, "x", 1, 1, 6), node("Frobnicate", names("x"), names("z")), info(13, "z", 1, 1, 3),
		node("Relu", names("z"), names("y")), info(12, "y", 1)), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if uncounted := graphtest.CostOf(g, 1).Uncounted; len(uncounted) != 1 || !strings.HasPrefix(uncounted[0], "Frobnicate") {
		t.Errorf("uncounted: %v", uncounted)
	}
}

// Whatever the bytes are, reading ends, without a panic, with a graph that is
// sound or an error that says something.
func FuzzRead(f *testing.F) {
	for _, name := range []string{"resnet", "mobilenet", "lstm", "attention", "segmenter"} {
		f.Add(open(f, name))
	}
	input := info(11, "x", 1, -1, 6, 4)
	for _, kind := range []string{"Slice", "Split", "Reshape", "Pad", "Resize", "Tile", "Expand", "Gather", "GatherND", "OneHot", "TopK", "Range", "ReduceSum", "Squeeze", "Unsqueeze", "ConstantOfShape", "ConvTranspose", "LSTM", "Einsum", "TreeEnsembleClassifier", "Conv", "MaxPool"} {
		f.Add(file(input, list("a", 1, -1), list("b", 3, 1), tensor("w", 1, 4, 6, 3), node(kind, names("x", "a", "b", "a"), names("y", "z"), number("axis", -1), attribute("axes", 1, 2)),
			node(kind, names("a", "b", "a"), names("u", "v")), node(kind, names("x", "w"), names("s"), attribute("pads", 1, -1), attribute("kernel_shape", 3)), info(12, "y", 1)))
	}
	f.Fuzz(func(t *testing.T, data []byte) {
		g, err := onnx.Read(data, onnx.Options{Dimensions: sizes, Limits: document.Limits{Nodes: 1000, Tensors: 1000}})
		if err != nil {
			if err.Error() == "" {
				t.Error("an error without words")
			}
			return
		}
		cost := graphtest.CostOf(g, 16)
		if cost.Operations < 0 || cost.PeakActivationBytes < 0 || g.Key() == "" {
			t.Errorf("cost %v", cost)
		}
	})
}
