package onnx_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/internal/problem"
)

func open(t testing.TB, name string) []byte {
	t.Helper()
	file, err := os.ReadFile(filepath.Join("testdata", name+".onnx"))
	if err != nil {
		t.Fatal(err)
	}
	return file
}

// sizes of the dimensions that the files leave open.
var sizes = map[string]int64{"steps": 12, "height": 32, "width": 32}

func read(t testing.TB, name string) graph.Graph {
	t.Helper()
	options := onnx.Options{Dimensions: maps.Clone(sizes)}
	if name == "attention" {
		options.Dimensions["steps"] = 10
	}
	g, err := onnx.Read(open(t, name), options)
	if err != nil {
		t.Fatal(err)
	}
	return g
}

// expected is what testdata/export.py counted with PyTorch.
type expected struct {
	Products   int64   `json:"products"`
	Parameters int64   `json:"parameters"`
	Output     []int64 `json:"output"`
}

func TestExportedModelsCostWhatPyTorchCounts(t *testing.T) {
	text, err := os.ReadFile("testdata/expected.json")
	if err != nil {
		t.Fatal(err)
	}
	var all map[string]expected
	if err := json.Unmarshal(text, &all); err != nil {
		t.Fatal(err)
	}
	for name, want := range all {
		t.Run(name, func(t *testing.T) {
			g := read(t, name)
			cost := graphtest.CostOf(g, 1)
			var operations int64
			for _, op := range g.Operators {
				switch op.Class {
				case graph.Convolution, graph.Depthwise, graph.Linear:
					operations += op.Operations
				case graph.Recurrent: // without what each step does beside its products
					for _, weight := range op.Weights[:2] {
						operations += 2 * op.Positions * graph.Product(weight.Shape...)
					}
				}
			}
			if operations != 2*want.Products {
				t.Errorf("%d products, PyTorch has %d", operations/2, want.Products)
			}
			if cost.Parameters != want.Parameters {
				t.Errorf("%d parameters, PyTorch has %d", cost.Parameters, want.Parameters)
			}
			if len(g.Outputs) != 1 || !slices.Equal(g.Outputs[0].Shape, want.Output) || !g.Outputs[0].Batched {
				t.Errorf("outputs %v, PyTorch has one of shape %v", g.Outputs, want.Output)
			}
			if len(cost.Uncounted) > 0 {
				t.Errorf("not counted: %v", cost.Uncounted)
			}
		})
	}
}

func TestAnUnsupportedBatchIsTheOneOfTheFile(t *testing.T) {
	symbolic, fixed := read(t, "lstm"), read(t, "gru") // the second has no open dimensions
	for _, g := range []graph.Graph{symbolic, fixed} {
		if !g.Inputs[0].Batched || !slices.Equal(g.Inputs[0].Shape, []int64{1, 12}) {
			t.Errorf("input %v", g.Inputs[0])
		}
		if one, many := graphtest.CostOf(g, 1), graphtest.CostOf(g, 8); many.Operations < 7*one.Operations {
			t.Errorf("a batch of 8 has %d operations, a sample %d", many.Operations, one.Operations)
		}
	}
}

func TestOpenDimensionsAreAskedForAllAtOnce(t *testing.T) {
	_, err := onnx.Read(open(t, "segmenter"), onnx.Options{})
	var known *problem.Error
	if !errors.As(err, &known) || known.Code != problem.Invalid || len(known.Fields) == 0 {
		t.Fatalf("%v", err)
	}
	if text := err.Error(); !strings.Contains(text, `"height"`) || !strings.Contains(text, `"width"`) {
		t.Errorf("the error does not name both dimensions: %s", text)
	}
	// By the place too.
	if _, err := onnx.Read(open(t, "segmenter"), onnx.Options{Dimensions: map[string]int64{"x:2": 32, "width": 32}}); err != nil {
		t.Error(err)
	}
	if _, err := onnx.Read(open(t, "segmenter"), onnx.Options{Dimensions: map[string]int64{"height": 0, "width": 32}}); err == nil {
		t.Error("a size of 0 was taken")
	}
}

func TestASizeThatIsNoneIsShown(t *testing.T) {
	for _, size := range []int64{0, -3} {
		shape := message(2, message(1, integer(1, 1)), message(1, integer(1, size)))
		_, err := onnx.Read(file(message(11, text(1, "x"), message(2, message(1, integer(1, 1), shape)))), onnx.Options{})
		if want := fmt.Sprintf("dimension 1 is %d in the file, which is no size", size); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, want %q", err, want)
		}
	}
}

func TestABatchThatTheFileFixes(t *testing.T) {
	for name, want := range map[string]int64{"lstm": 0, "lenet5": 0, "gru": 1} {
		if got := read(t, name).FixedBatch; got != want {
			t.Errorf("%s takes %d at a time, want %d", name, got, want)
		}
	}
	g, err := onnx.Read(file(info(11, "x", 1, 4, 3), node("Relu", names("x"), names("y")), info(12, "y", 1, 4, 3)), onnx.Options{})
	if err != nil || g.FixedBatch != 4 {
		t.Errorf("%v, it takes %d at a time", err, g.FixedBatch)
	}
}

// Nobody knows how often a loop runs: it is not counted, and said to be so.
func TestGraphsWithinTheGraphAreNotCounted(t *testing.T) {
	body := message(5, text(1, "body"), message(6))
	g, err := onnx.Read(file(info(11, "x", 1, 1, 6), node("Loop", names("x"), names("z"), body), info(13, "z", 1, 1, 6), node("Relu", names("z"), names("y")), info(12, "y", 1, 1, 6)), onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if cost := graphtest.CostOf(g, 1); !strings.Contains(strings.Join(cost.Uncounted, " "), "Loop") || cost.Operations == 0 {
		t.Errorf("%+v", cost)
	}
}

func TestLargerInputsCostMore(t *testing.T) {
	short, err := onnx.Read(open(t, "lstm"), onnx.Options{Dimensions: map[string]int64{"steps": 10}})
	if err != nil {
		t.Fatal(err)
	}
	long, err := onnx.Read(open(t, "lstm"), onnx.Options{Dimensions: map[string]int64{"steps": 20}})
	if err != nil {
		t.Fatal(err)
	}
	if graphtest.CostOf(long, 1).Operations < 19*graphtest.CostOf(short, 1).Operations/10 || long.Key() == short.Key() {
		t.Error("twice the steps do not cost twice as much")
	}
	if graphtest.CostOf(long, 1).Parameters != graphtest.CostOf(short, 1).Parameters {
		t.Error("the steps change the parameters")
	}
}

// Other weights, names and producers: the same key. What is changed is changed
// in the bytes of the file, at the same length.
func TestKeyIgnoresWeightsAndNames(t *testing.T) {
	want := read(t, "resnet").Key()
	file := open(t, "resnet")
	for _, change := range [][2]string{{"pytorch", "keras2x"}, {"Conv_", "conV#"}, {"stem.0.weight", "stem.0.WEIGHT"}} {
		changed := []byte(strings.ReplaceAll(string(file), change[0], change[1]))
		if slices.Equal(changed, file) {
			t.Fatalf("%q is not in the file", change[0])
		}
		if g, err := onnx.Read(changed, onnx.Options{}); err != nil || g.Key() != want {
			t.Errorf("with %q for %q: %v", change[1], change[0], err)
		}
	}
	// The largest stored tensor has 2304 floats: fill a part of it with others.
	weights := slices.Clone(file)
	at := len(weights) / 2
	for i := range 64 {
		weights[at+i] ^= 1
	}
	if g, err := onnx.Read(weights, onnx.Options{}); err != nil || g.Key() != want {
		t.Errorf("with other weights: %v", err)
	}
	if read(t, "mobilenet").Key() == want {
		t.Error("another network has the same key")
	}
}
