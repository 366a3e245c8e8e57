package graph_test

import (
	"fmt"
	"maps"
	"slices"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/inference_emu/graph"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
)

func TestPeakOfHandCountedGraphs(t *testing.T) {
	chain := graphtest.NewBuilder("chain")
	x := chain.Input("x", graph.Float32, 1, 100) // 400 bytes
	x = chain.Relu(chain.Linear(x, 50))          // 200 and 200
	chain.Linear(x, 1)

	residual := graphtest.NewBuilder("residual")
	y := residual.Input("y", graph.Float32, 1, 100)
	residual.Sum(residual.Relu(residual.Relu(y)), y) // y lives on

	view := graphtest.NewBuilder("view")
	z := view.Input("z", graph.Float32, 1, 10, 10)
	view.Sum(view.Flatten(z), view.Relu(view.Flatten(z)))

	for name, test := range map[string]struct {
		builder *graphtest.Builder
		batch   int64
		want    int64
	}{
		"chain":                    {chain, 1, 600},
		"chain, batch of 8":        {chain, 8, 4800},
		"residual":                 {residual, 1, 1200},
		"views share their memory": {view, 1, 1200},
	} {
		t.Run(name, func(t *testing.T) {
			if got := build(t, test.builder).PeakActivations(test.batch); got != test.want {
				t.Errorf("%d bytes, want %d", got, test.want)
			}
		})
	}
}

// drawn is a network of random layers; the same numbers give the same one.
func drawn(t *rapid.T) *graphtest.Builder {
	b := graphtest.NewBuilder("drawn")
	x := b.Input("x", graph.Float32, 1, rapid.Int64Range(1, 4).Draw(t, "channels"), 16, 16)
	made := []graph.Tensor{x}
	for range rapid.IntRange(1, 12).Draw(t, "layers") {
		from := rapid.SampledFrom(made).Draw(t, "from")
		switch rapid.IntRange(0, 4).Draw(t, "kind") {
		case 0:
			made = append(made, b.Convolution(from, graphtest.Filter{Window: graphtest.Square(3, 1, 1), Out: rapid.Int64Range(1, 4).Draw(t, "out")}))
		case 1:
			made = append(made, b.Relu(from))
		case 2:
			made = append(made, b.Concat(1, from, rapid.SampledFrom(made).Draw(t, "with")))
		case 3:
			made = append(made, b.Reshape(from, from.Shape...))
		case 4:
			made = append(made, b.BatchNormalization(from))
		}
	}
	b.Output(made[len(made)-1])
	return b
}

// renamed is the same architecture with other names.
func renamed(g graph.Graph) graph.Graph {
	name := func(s string) string { return "other/" + s }
	out := graph.Graph{Name: "renamed", Tensors: map[string]graph.Tensor{}}
	rename := func(tensors []graph.Tensor) (list []graph.Tensor) {
		for _, tensor := range tensors {
			tensor.Name = name(tensor.Name)
			list = append(list, tensor)
		}
		return list
	}
	out.Inputs, out.Outputs = rename(g.Inputs), rename(g.Outputs)
	for _, tensor := range rename(slices.Collect(maps.Values(g.Tensors))) {
		out.Tensors[tensor.Name] = tensor
	}
	for i, op := range g.Operators {
		op.Name = fmt.Sprint(i)
		op.Inputs, op.Outputs, op.Weights = slices.Clone(op.Inputs), slices.Clone(op.Outputs), slices.Clone(op.Weights)
		for j := range op.Inputs {
			op.Inputs[j] = name(op.Inputs[j])
		}
		for j := range op.Outputs {
			op.Outputs[j] = name(op.Outputs[j])
		}
		for j := range op.Weights {
			op.Weights[j].Name = name(op.Weights[j].Name)
		}
		out.Operators = append(out.Operators, op)
	}
	return out
}

// shuffled runs the same operators in another order that respects what they read.
func shuffled(t *rapid.T, g graph.Graph) graph.Graph {
	written := map[string]bool{}
	for _, input := range g.Inputs {
		written[input.Name] = true
	}
	left, order := slices.Clone(g.Operators), []graph.Operator{}
	for len(left) > 0 {
		var ready []int
		for i, op := range left {
			if !slices.ContainsFunc(op.Inputs, func(name string) bool { return !written[name] }) {
				ready = append(ready, i)
			}
		}
		at := rapid.SampledFrom(ready).Draw(t, "next")
		for _, name := range left[at].Outputs {
			written[name] = true
		}
		order = append(order, left[at])
		left = slices.Delete(left, at, at+1)
	}
	g.Operators = order
	return g
}

func TestKeyIsOfTheArchitecture(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := drawn(t).Graph()
		if err != nil {
			t.Fatal(err)
		}
		other := shuffled(t, renamed(g))
		if err := other.Check(); err != nil {
			t.Fatal(err)
		}
		if other.Key() != g.Key() {
			t.Fatal("names or the order of operators changed the key")
		}
		cost, same := graphtest.CostOf(g, 3), graphtest.CostOf(other, 3)
		if cost.PeakActivationBytes, same.PeakActivationBytes = 0, 0; fmt.Sprint(cost) != fmt.Sprint(same) {
			t.Fatalf("names or the order of operators changed the cost: %v and %v", cost, same)
		}
	})
}

func TestAnotherArchitectureHasAnotherKey(t *testing.T) {
	small := func(width, kernel int64, depth int, last string) graph.Graph {
		b := graphtest.NewBuilder("small")
		x := b.Input("x", graph.Float32, 1, 3, 8, 8)
		for range depth {
			x = b.Convolution(x, graphtest.Filter{Window: graphtest.Square(kernel, 1, kernel/2), Out: width})
		}
		b.Pointwise(last, x)
		return build(t, b)
	}
	connected := func(shared bool) graph.Graph { // the same operators, otherwise connected
		b := graphtest.NewBuilder("connected")
		x := b.Input("x", graph.Float32, 1, 8)
		y := b.Relu(x)
		if shared {
			b.Sum(b.Pointwise("Tanh", y), y)
		} else {
			b.Sum(b.Pointwise("Tanh", x), y)
		}
		return build(t, b)
	}
	keys := map[string]string{}
	for name, g := range map[string]graph.Graph{
		"base": small(4, 3, 2, "Relu"), "wider": small(5, 3, 2, "Relu"), "deeper": small(4, 3, 3, "Relu"),
		"larger kernel": small(4, 5, 2, "Relu"), "other activation": small(4, 3, 2, "Tanh"),
		"chained": connected(true), "beside": connected(false), "ResNet-18": resnet(t, []int{2, 2, 2, 2}, false),
		"ResNet-34": resnet(t, []int{3, 4, 6, 3}, false), "ResNet-50": resnet(t, []int{3, 4, 6, 3}, true),
	} {
		if other, there := keys[g.Key()]; there {
			t.Errorf("%s and %s have the same key", name, other)
		}
		keys[g.Key()] = name
	}
}

func TestPeakIsBetweenItsBounds(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		g, err := drawn(t).Graph()
		if err != nil {
			t.Fatal(err)
		}
		batch := rapid.Int64Range(1, 64).Draw(t, "batch")
		var all, largest int64
		for _, tensor := range g.Tensors {
			all += tensor.Bytes()
		}
		views := map[string]bool{}
		for _, op := range g.Operators {
			if op.View {
				views[op.Outputs[0]] = true
			} else {
				unique := map[string]int64{}
				for _, name := range append(slices.Clone(op.Inputs), op.Outputs...) {
					if !views[name] { // what it shows may be there under another name
						unique[name] = g.Tensors[name].Bytes()
					}
				}
				var sum int64
				for _, bytes := range unique {
					sum += bytes
				}
				largest = max(largest, sum)
			}
		}
		peak := g.PeakActivations(batch)
		if peak != batch*g.PeakActivations(1) {
			t.Fatalf("%d bytes for %d samples, %d for one", peak, batch, g.PeakActivations(1))
		}
		if peak < batch*largest || peak > batch*all {
			t.Fatalf("%d bytes, the largest operator has %d and all tensors %d", peak, batch*largest, batch*all)
		}
	})
}

func TestCostOfABatch(t *testing.T) {
	g := lenet(t)
	one, many := graphtest.CostOf(g, 1), graphtest.CostOf(g, 32)
	if many.Operations != 32*one.Operations || many.ReadBytes != 32*one.ReadBytes || many.WrittenBytes != 32*one.WrittenBytes {
		t.Errorf("a batch costs %v, a sample %v", many, one)
	}
	if many.WeightBytes != one.WeightBytes || many.Parameters != one.Parameters || one.StoredBytes != 4*one.Parameters {
		t.Errorf("weights grow with the batch: %v and %v", many, one)
	}
}

func TestSharedWeightsAreStoredOnceAndReadTwice(t *testing.T) {
	b := graphtest.NewBuilder("tied")
	x := b.Input("x", graph.Float32, 1, 8)
	for range 2 {
		op, y, err := graph.NewMatrixProduct(append(graph.Computed(x), graphtest.Stored("w", graph.Float32, 8, 8)))
		if err != nil {
			t.Fatal(err)
		}
		x = b.Add(op, y)[0]
	}
	cost := graphtest.CostOf(build(t, b), 1)
	if cost.Parameters != 64 || cost.StoredBytes != 256 || cost.WeightBytes != 512 {
		t.Errorf("%d parameters in %d bytes, %d bytes read", cost.Parameters, cost.StoredBytes, cost.WeightBytes)
	}
}

func TestWhatIsNotCountedIsSaid(t *testing.T) {
	b := graphtest.NewBuilder("unknown")
	x := b.Input("x", graph.Float32, 1, 8)
	b.Add(graph.NewOperator("Frobnicate", graph.Rest, graph.Computed(x)), graph.Tensor{Type: graph.Float32, Shape: []int64{1}})
	if got := graphtest.CostOf(build(t, b), 1).Uncounted; !slices.Equal(got, []string{"Frobnicate Frobnicate.0"}) {
		t.Errorf("uncounted: %v", got)
	}
}
