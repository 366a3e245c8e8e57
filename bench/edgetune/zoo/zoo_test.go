package zoo_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
)

func cost(g graph.Graph) (multiplications, parameters float64) {
	for _, operator := range g.Operators {
		switch operator.Class {
		case graph.Convolution, graph.Depthwise, graph.Linear:
			multiplications += float64(operator.Operations) / 2e6
		}
		parameters += float64(operator.Parameters) / 1e6
	}
	return multiplications, parameters
}

// The published numbers count multiply-accumulates in millions and parameters in
// millions, mostly rounded; classifiers of 1000 and 1001 classes are mixed. Of the
// small minimalistic network only the parameters are held against: the list that
// gives its multiplications counts another head for the small networks.
func TestCostIsAsPublished(t *testing.T) {
	f := graph.Float32
	v3 := func(large, minimalistic bool) graph.Graph {
		return zoo.MobileNetV3(zoo.V3{Large: large, Minimalistic: minimalistic, Width: 1, Resolution: 224}, f)
	}
	must := func(g graph.Graph, err error) graph.Graph {
		if err != nil {
			t.Fatal(err)
		}
		return g
	}
	for _, test := range []struct {
		name                        string
		graph                       graph.Graph
		multiplications, parameters float64
	}{
		{"MobileNet v1 1.0 224", zoo.MobileNetV1(1, 224, f), 569, 4.24},
		{"MobileNet v1 0.25 128", zoo.MobileNetV1(0.25, 128, f), 14, 0.47},
		{"MobileNet v2 1.0 224", zoo.MobileNetV2(1, 224, f), 300, 3.47},
		{"MobileNet v2 1.4 224", zoo.MobileNetV2(1.4, 224, f), 582, 6.06},
		{"MobileNet v2 0.35 224", zoo.MobileNetV2(0.35, 224, f), 59, 1.66},
		{"MobileNet v3 large", v3(true, false), 219, 5.4},
		{"MobileNet v3 small", v3(false, false), 57, 2.5},
		{"MobileNet v3 large minimalistic", v3(true, true), 209, 3.9},
		{"MobileNet v3 small minimalistic", v3(false, true), 0, 2.0},
		{"EfficientNet-lite0", zoo.EfficientNetLite(0, f), 407, 4.7},
		{"EfficientNet-lite1", zoo.EfficientNetLite(1, f), 631, 5.4},
		{"EfficientNet-lite2", zoo.EfficientNetLite(2, f), 899, 6.1},
		{"EfficientNet-lite3", zoo.EfficientNetLite(3, f), 1440, 8.2},
		{"EfficientNet-lite4", zoo.EfficientNetLite(4, f), 2640, 13.0},
		{"AlexNet", zoo.AlexNet(f), 714, 61.1},
		{"ResNet-50", zoo.ResNet50(224, f), 4100, 25.6},
		{"Inception v3", zoo.InceptionV3(299, f), 5713, 23.8},
		{"Xception", zoo.Xception(299, f), 8400, 22.9},
		{"NAS-Bench-201, all 3 x 3", must(zoo.NASBench201("|nor_conv_3x3~0|+|nor_conv_3x3~0|nor_conv_3x3~1|+|nor_conv_3x3~0|nor_conv_3x3~1|nor_conv_3x3~2|", f, true)), 220, 1.53},
		{"Tiny ad", must(zoo.Tiny("ad", f)), 0.264, 0.27},
		{"Tiny ic", must(zoo.Tiny("ic", f)), 12.5, 0.078},
		{"Tiny kws", must(zoo.Tiny("kws", f)), 2.66, 0.0236},
		{"Tiny vww", must(zoo.Tiny("vww", f)), 7.49, 0.21},
	} {
		t.Run(test.name, func(t *testing.T) {
			multiplications, parameters := cost(test.graph)
			if test.multiplications > 0 && math.Abs(multiplications/test.multiplications-1) > 0.06 {
				t.Errorf("%.3f million multiplications, published %.3f", multiplications, test.multiplications)
			}
			if math.Abs(parameters/test.parameters-1) > 0.06 {
				t.Errorf("%.3f million parameters, published %.3f", parameters, test.parameters)
			}
		})
	}
}

func TestCellsThatAreNotCellsAreRefused(t *testing.T) {
	for _, cell := range []string{"", "|none~0|", "|none~0|+|none~0|none~1|+|none~0|none~1|magic~2|", "|none~1|+|none~0|none~1|+|none~0|none~1|none~2|"} {
		if _, err := zoo.NASBench201(cell, graph.Float32, true); err == nil {
			t.Errorf("%q was taken", cell)
		}
	}
	if _, err := zoo.Tiny("mnist", graph.Float32); err == nil {
		t.Error("an unknown task was taken")
	}
}

func TestWhatACellDoesNotNeedCostsNothing(t *testing.T) {
	empty, err := zoo.NASBench201("|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|none~1|none~2|", graph.Float32, true)
	if err != nil {
		t.Fatal(err)
	}
	full, err := zoo.NASBench201("|nor_conv_3x3~0|+|none~0|none~1|+|skip_connect~0|nor_conv_1x1~1|none~2|", graph.Float32, true)
	if err != nil {
		t.Fatal(err)
	}
	less, _ := cost(empty)
	more, _ := cost(full)
	if less > 12 || more < less+30 {
		t.Errorf("%.1f million multiplications without the branch, %.1f with it", less, more)
	}
}

// What is run is what is estimated: a network read back from its file does the
// same work. The two whose weights take hundreds of megabytes have only operators
// that others have too, and are left out.
func TestAFileIsTheNetwork(t *testing.T) {
	all, err := zoo.Runnable()
	if err != nil {
		t.Fatal(err)
	}
	names := map[string]bool{}
	for _, g := range all {
		names[g.Name] = true
		if estimate.Summarize(g).Float.WeightBytes > 20e6 {
			continue
		}
		content, err := zoo.File(g)
		if err != nil {
			t.Fatal(err)
		}
		read, err := onnx.Read(content, onnx.Options{})
		if err != nil {
			t.Fatalf("%s: %v", g.Name, err)
		}
		if got, want := estimate.Summarize(read), estimate.Summarize(g); got != want {
			t.Errorf("%s:\n%+v read from the file\n%+v in the zoo", g.Name, got, want)
		}
	}
	if len(names) != 10 {
		t.Errorf("%d names for ten networks: %v", len(names), names)
	}
}

func TestWhatHasNoFileIsRefused(t *testing.T) {
	empty, err := zoo.NASBench201("|none~0|+|none~0|none~1|+|nor_conv_1x1~0|none~1|none~2|", graph.Float32, false)
	if err != nil {
		t.Fatal(err)
	}
	for _, g := range []graph.Graph{zoo.MobileNetV1(0.25, 128, graph.Int8), empty} {
		if _, err := zoo.File(g); err == nil {
			t.Errorf("%s was written", g.Name)
		}
	}
}
