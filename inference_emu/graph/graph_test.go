package graph_test

import (
	"encoding/json"
	"reflect"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
)

// products are the multiplications and additions of convolutions and matrix
// products, which is what papers publish: two operations each.
func products(g graph.Graph) int64 {
	var sum int64
	for _, part := range graphtest.CostOf(g, 1).Classes {
		switch part.Class {
		case graph.Convolution, graph.Depthwise, graph.Linear:
			sum += part.Operations
		}
	}
	return sum / 2
}

func build(t testing.TB, b *graphtest.Builder) graph.Graph {
	t.Helper()
	g, err := b.Graph()
	if err != nil {
		t.Fatal(err)
	}
	return g
}

func lenet(t testing.TB) graph.Graph {
	b := graphtest.NewBuilder("lenet5")
	x := b.Input("image", graph.Float32, 1, 1, 32, 32)
	x = b.Pointwise("Tanh", b.Convolution(x, graphtest.Filter{Window: graphtest.Square(5, 1, 0), Out: 6}))
	x = b.AveragePool(x, graphtest.Square(2, 2, 0))
	x = b.Pointwise("Tanh", b.Convolution(x, graphtest.Filter{Window: graphtest.Square(5, 1, 0), Out: 16}))
	x = b.Flatten(b.AveragePool(x, graphtest.Square(2, 2, 0)))
	for _, width := range []int64{120, 84} {
		x = b.Pointwise("Tanh", b.Linear(x, width))
	}
	b.Output(b.Linear(x, 10))
	return build(t, b)
}

// normalized is a convolution and its batch normalization.
func normalized(b *graphtest.Builder, x graph.Tensor, filter graphtest.Filter) graph.Tensor {
	filter.Unbiased = true
	return b.BatchNormalization(b.Convolution(x, filter))
}

// resnet is that of torchvision: blocks of two 3x3 convolutions, or of a 3x3
// between two of 1x1 with the stride on the 3x3.
func resnet(t testing.TB, depths []int, bottleneck bool) graph.Graph {
	b := graphtest.NewBuilder("resnet")
	x := b.Input("image", graph.Float32, 1, 3, 224, 224)
	x = b.Relu(normalized(b, x, graphtest.Filter{Window: graphtest.Square(7, 2, 3), Out: 64}))
	x = b.MaxPool(x, graphtest.Square(3, 2, 1))
	for stage, depth := range depths {
		width := int64(64) << stage
		out := width
		if bottleneck {
			out *= 4
		}
		for i := range depth {
			stride := int64(1)
			if i == 0 && stage > 0 {
				stride = 2
			}
			short := x
			if stride != 1 || x.Shape[1] != out {
				short = normalized(b, x, graphtest.Filter{Window: graphtest.Square(1, stride, 0), Out: out})
			}
			if bottleneck {
				x = b.Relu(normalized(b, x, graphtest.Filter{Window: graphtest.Square(1, 1, 0), Out: width}))
				x = b.Relu(normalized(b, x, graphtest.Filter{Window: graphtest.Square(3, stride, 1), Out: width}))
				x = normalized(b, x, graphtest.Filter{Window: graphtest.Square(1, 1, 0), Out: out})
			} else {
				x = b.Relu(normalized(b, x, graphtest.Filter{Window: graphtest.Square(3, stride, 1), Out: width}))
				x = normalized(b, x, graphtest.Filter{Window: graphtest.Square(3, 1, 1), Out: width})
			}
			x = b.Relu(b.Sum(x, short))
		}
	}
	b.Output(b.Linear(b.Flatten(b.GlobalAveragePool(x)), 1000))
	return build(t, b)
}

func mobilenetV2(t testing.TB) graph.Graph {
	b := graphtest.NewBuilder("mobilenet_v2")
	x := b.Input("image", graph.Float32, 1, 3, 224, 224)
	x = b.Pointwise("Clip", normalized(b, x, graphtest.Filter{Window: graphtest.Square(3, 2, 1), Out: 32}))
	for _, stage := range [][4]int64{{1, 16, 1, 1}, {6, 24, 2, 2}, {6, 32, 3, 2}, {6, 64, 4, 2}, {6, 96, 3, 1}, {6, 160, 3, 2}, {6, 320, 1, 1}} {
		for i := range stage[2] {
			stride, short, y := int64(1), x, x
			if i == 0 {
				stride = stage[3]
			}
			if stage[0] != 1 {
				y = b.Pointwise("Clip", normalized(b, y, graphtest.Filter{Window: graphtest.Square(1, 1, 0), Out: x.Shape[1] * stage[0]}))
			}
			y = b.Pointwise("Clip", b.BatchNormalization(b.Depthwise(y, graphtest.Square(3, stride, 1), true)))
			x = normalized(b, y, graphtest.Filter{Window: graphtest.Square(1, 1, 0), Out: stage[1]})
			if stride == 1 && short.Shape[1] == stage[1] {
				x = b.Sum(x, short)
			}
		}
	}
	x = b.Pointwise("Clip", normalized(b, x, graphtest.Filter{Window: graphtest.Square(1, 1, 0), Out: 1280}))
	b.Output(b.Linear(b.Flatten(b.GlobalAveragePool(x)), 1000))
	return build(t, b)
}

// The published numbers: parameters and GFLOPS of torchvision's model
// documentation (which counts a multiplication and an addition as one), and
// LeNet-5 by hand: 28*28*6*25 + 10*10*16*150 + 400*120 + 120*84 + 84*10.
func TestKnownModelsCostWhatIsPublished(t *testing.T) {
	for _, test := range []struct {
		name       string
		graph      graph.Graph
		products   int64
		parameters int64
	}{
		{"LeNet-5", lenet(t), 416_520, 61_706},
		{"ResNet-18", resnet(t, []int{2, 2, 2, 2}, false), 1_814_073_344, 11_689_512},
		{"ResNet-50", resnet(t, []int{3, 4, 6, 3}, true), 4_089_184_256, 25_557_032},
		{"MobileNetV2", mobilenetV2(t), 300_774_272, 3_504_872},
	} {
		t.Run(test.name, func(t *testing.T) {
			if got := products(test.graph); got != test.products {
				t.Errorf("%d products, published are %d", got, test.products)
			}
			if got := graphtest.CostOf(test.graph, 1).Parameters; got != test.parameters {
				t.Errorf("%d parameters, published are %d", got, test.parameters)
			}
		})
	}
}

func TestOperatorsCost(t *testing.T) {
	type build func(b *graphtest.Builder, x graph.Tensor) graph.Tensor
	square := graphtest.Square
	for _, test := range []struct {
		name       string
		shape      []int64
		build      build
		class      graph.Class
		output     []int64
		operations int64
		parameters int64
		weight     int64
		read       int64
		written    int64
	}{
		{"convolution", []int64{1, 3, 8, 8}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Convolution(x, graphtest.Filter{Window: square(3, 1, 1), Out: 4})
		}, graph.Convolution, []int64{1, 4, 8, 8}, 2 * 64 * 4 * 27, 112, 448, 768, 1024},
		{"strided", []int64{1, 2, 7, 7}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Convolution(x, graphtest.Filter{Window: square(3, 2, 0), Out: 1, Unbiased: true})
		}, graph.Convolution, []int64{1, 1, 3, 3}, 2 * 9 * 18, 18, 72, 392, 36},
		{"dilated", []int64{1, 1, 9}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Convolution(x, graphtest.Filter{Window: graph.Window{Kernel: []int64{3}, Dilation: []int64{2}}, Out: 2, Unbiased: true})
		}, graph.Convolution, []int64{1, 2, 5}, 2 * 5 * 2 * 3, 6, 24, 36, 40},
		{"three dimensions", []int64{1, 1, 4, 4, 4}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Convolution(x, graphtest.Filter{Window: graph.Window{Kernel: []int64{2, 2, 2}, Stride: []int64{2, 2, 2}}, Out: 3, Unbiased: true})
		}, graph.Convolution, []int64{1, 3, 2, 2, 2}, 2 * 8 * 3 * 8, 24, 96, 256, 96},
		{"grouped", []int64{1, 4, 4, 4}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Convolution(x, graphtest.Filter{Window: square(1, 1, 0), Out: 8, Groups: 2, Unbiased: true})
		}, graph.Convolution, []int64{1, 8, 4, 4}, 2 * 16 * 8 * 2, 16, 64, 256, 512},
		{"depthwise, same", []int64{1, 4, 5, 5}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Depthwise(x, graphtest.SquareSame(3, 2), false)
		}, graph.Depthwise, []int64{1, 4, 3, 3}, 2 * 9 * 4 * 9, 40, 160, 400, 144},
		{"transposed convolution", []int64{1, 2, 4, 4}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.TransposedConvolution(x, square(4, 2, 1), 3)
		}, graph.Convolution, []int64{1, 3, 8, 8}, 2 * 16 * 2 * 3 * 16, 99, 396, 128, 768},
		{"linear", []int64{1, 10}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.Linear(x, 4) },
			graph.Linear, []int64{1, 4}, 80, 44, 176, 40, 16},
		{"product with broadcasting", []int64{1, 8, 5, 6}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Product(x, b.Input("y", graph.Float32, 1, 6, 7))
		}, graph.Linear, []int64{1, 8, 5, 7}, 2 * 8 * 5 * 6 * 7, 0, 0, 960 + 168, 1120},
		{"LSTM", []int64{1, 6, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			all, _ := b.Recurrent("LSTM", x, 5)
			return all
		}, graph.Recurrent, []int64{1, 6, 1, 5}, 6 * (2*4*5*(3+5) + 9*5), 4*5*(3+5) + 8*5, 800, 72, 120 + 20 + 20},
		{"GRU", []int64{1, 2, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			all, _ := b.Recurrent("GRU", x, 2)
			return all
		}, graph.Recurrent, []int64{1, 2, 1, 2}, 2 * (2*3*2*5 + 8*2), 42, 168, 24, 16 + 8},
		{"max pool", []int64{1, 2, 6, 6}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.MaxPool(x, square(3, 2, 1)) },
			graph.Pooling, []int64{1, 2, 3, 3}, 18 * 9, 0, 0, 288, 72},
		{"max pool, rounded up", []int64{1, 1, 6}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.MaxPool(x, graph.Window{Kernel: []int64{3}, Stride: []int64{2}, Ceil: true})
		}, graph.Pooling, []int64{1, 1, 3}, 9, 0, 0, 24, 12},
		{"global pool", []int64{1, 2, 6, 6}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.GlobalAveragePool(x) },
			graph.Pooling, []int64{1, 2, 1, 1}, 72, 0, 0, 288, 8},
		{"batch normalization", []int64{1, 2, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.BatchNormalization(x) },
			graph.Normalization, []int64{1, 2, 3}, 12, 4, 32, 24, 24},
		{"layer normalization", []int64{1, 2, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.LayerNormalization(x) },
			graph.Normalization, []int64{1, 2, 3}, 42, 6, 24, 24, 24},
		{"activation", []int64{1, 5}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.Relu(x) },
			graph.Activation, []int64{1, 5}, 5, 0, 0, 20, 20},
		{"elementwise, broadcast", []int64{1, 4, 1}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor {
			return b.Pointwise("Mul", x, b.Input("y", graph.Float32, 5))
		}, graph.Elementwise, []int64{1, 4, 5}, 20, 0, 0, 36, 80},
		{"concat", []int64{1, 2, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.Concat(1, x, x) },
			graph.Movement, []int64{1, 4, 3}, 0, 0, 0, 48, 48},
		{"flatten", []int64{1, 2, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.Flatten(x) },
			graph.Movement, []int64{1, 6}, 0, 0, 0, 0, 0},
		{"transpose", []int64{1, 2, 3}, func(b *graphtest.Builder, x graph.Tensor) graph.Tensor { return b.Transpose(x, 0, 2, 1) },
			graph.Movement, []int64{1, 3, 2}, 0, 0, 0, 24, 24},
	} {
		t.Run(test.name, func(t *testing.T) {
			b := graphtest.NewBuilder("one")
			output := test.build(b, b.Input("x", graph.Float32, test.shape...))
			g, err := b.Graph()
			if err != nil {
				t.Fatal(err)
			}
			op := g.Operators[0]
			if op.Class != test.class || !reflect.DeepEqual(output.Shape, test.output) {
				t.Errorf("%s %v, want %s %v", op.Class, output.Shape, test.class, test.output)
			}
			got := []int64{op.Operations, op.Parameters, op.WeightBytes, op.ReadBytes, op.WrittenBytes}
			want := []int64{test.operations, test.parameters, test.weight, test.read, test.written}
			if !reflect.DeepEqual(got, want) {
				t.Errorf("operations, parameters and bytes of weights, read, written: %v, want %v", got, want)
			}
		})
	}
}

func TestFaultsSayWhereAndWhat(t *testing.T) {
	for name, build := range map[string]func(b *graphtest.Builder, x graph.Tensor){
		"kernel too large": func(b *graphtest.Builder, x graph.Tensor) { b.MaxPool(x, graphtest.Square(9, 1, 0)) },
		"groups do not fit": func(b *graphtest.Builder, x graph.Tensor) {
			b.Convolution(x, graphtest.Filter{Window: graphtest.Square(1, 1, 0), Out: 4, Groups: 2})
		},
		"rank of the window": func(b *graphtest.Builder, x graph.Tensor) { b.MaxPool(x, graph.Window{Kernel: []int64{2}}) },
		"stride of nothing": func(b *graphtest.Builder, x graph.Tensor) {
			b.MaxPool(x, graph.Window{Kernel: []int64{2, 2}, Stride: []int64{0, 1}})
		},
		"broadcast":    func(b *graphtest.Builder, x graph.Tensor) { b.Sum(x, b.Input("y", graph.Float32, 3)) },
		"concat":       func(b *graphtest.Builder, x graph.Tensor) { b.Concat(1, x, b.Input("y", graph.Float32, 1, 3, 4, 5)) },
		"transpose":    func(b *graphtest.Builder, x graph.Tensor) { b.Transpose(x, 0, 0, 1, 2) },
		"product":      func(b *graphtest.Builder, x graph.Tensor) { b.Product(x, b.Input("y", graph.Float32, 3, 3)) },
		"unknown kind": func(b *graphtest.Builder, x graph.Tensor) { b.Pointwise("Frobnicate", x) },
		"unknown cell": func(b *graphtest.Builder, x graph.Tensor) { b.Recurrent("ESN", b.Flatten(x), 3) },
		"name twice":   func(b *graphtest.Builder, x graph.Tensor) { b.Input("x", graph.Float32, 1) },
		"beyond counting": func(b *graphtest.Builder, x graph.Tensor) {
			b.Linear(b.Input("y", graph.Float32, 1<<40, 1<<40), 1<<40)
		},
	} {
		t.Run(name, func(t *testing.T) {
			b := graphtest.NewBuilder("faulty")
			build(b, b.Input("x", graph.Float32, 1, 3, 4, 4))
			b.Relu(graph.Tensor{}) // nothing after the first fault hides it
			if _, err := b.Graph(); err == nil {
				t.Fatal("no fault")
			}
		})
	}
}

func TestGraphsSurviveJSON(t *testing.T) {
	g := mobilenetV2(t)
	text, err := json.Marshal(g)
	if err != nil {
		t.Fatal(err)
	}
	var back graph.Graph
	if err := json.Unmarshal(text, &back); err != nil {
		t.Fatal(err)
	}
	if back.Key() != g.Key() || !reflect.DeepEqual(graphtest.CostOf(back, 3), graphtest.CostOf(g, 3)) {
		t.Error("another graph came back")
	}
}
