package backend_test

import (
	"encoding/json"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

const goodRun = `{"model":{"operations":1e9,"layers":{"convolution":3}},"request":{"rate":2,"batch":1,"pattern":"event"},"backend":"B1","measured":{"latency_seconds":0.1,"gpu_memory_bytes":0}}`

func TestRunsAreReadStrictly(t *testing.T) {
	for _, one := range []struct{ name, from, to, message string }{
		{"a good one", "", "", ""},
		{"an unknown field", `"rate"`, `"speed"`, "unknown field"},
		{"something after it", `:0}}`, `:0}} 7`, "after the JSON object"},
		{"no latency at all", `0.1`, `0`, "measured.latency_seconds"},
		{"more than all cores", `"gpu_memory_bytes":0`, `"cpu_utilization":1.5`, "measured.cpu_utilization"},
		{"nothing measured", `{"latency_seconds":0.1,"gpu_memory_bytes":0}`, `{}`, "nothing was measured"},
		{"no backend", `"B1"`, `""`, "backend"},
		{"no batch", `"batch":1`, `"batch":0`, "request.batch"},
		{"an unknown pattern", `event`, `sometimes`, "request.pattern"},
		{"an unknown class", `convolution`, `magic`, "model.layers"},
		{"a count below nothing", `"convolution":3`, `"convolution":-3`, "model.layers.convolution"},
		{"infinitely many operations", `1e9`, `1e300`, "model.operations"},
		{"a long line", `"B1"`, `"` + strings.Repeat("B", 70_000) + `"`, "longer than a run can be"},
	} {
		t.Run(one.name, func(t *testing.T) {
			runs, err := backend.ParseRuns([]byte(goodRun + "\n\n" + strings.Replace(goodRun, one.from, one.to, 1) + "\n"))
			if one.message == "" {
				if err != nil || len(runs) != 2 || runs[1].Request.Pattern != backend.Event {
					t.Errorf("%v %+v", err, runs)
				}
				return
			}
			if err == nil || !strings.Contains(err.Error(), one.message) || !strings.Contains(err.Error(), "3") {
				t.Errorf("got %v, want %q of line 3", err, one.message)
			}
		})
	}
}

func TestRunsAreWrittenAsTheyAreRead(t *testing.T) {
	runs := someRuns(rand.New(rand.NewPCG(1, 1)), 8)
	runs[3].Explored = true
	var lines []string
	for _, run := range runs {
		line, err := json.Marshal(run)
		if err != nil {
			t.Fatal(err)
		}
		lines = append(lines, string(line))
	}
	again, err := backend.ParseRuns([]byte(strings.Join(lines, "\n")))
	if err != nil || !reflect.DeepEqual(again, runs) {
		t.Errorf("%v: %+v", err, again)
	}
}

func FuzzParseRuns(f *testing.F) {
	f.Add([]byte(goodRun))
	f.Add([]byte(goodRun + "\n" + strings.Replace(goodRun, "B1", "B3", 1)))
	f.Add([]byte(`{"measured":{"latency_seconds":null}}`))
	f.Fuzz(func(t *testing.T, data []byte) {
		runs, err := backend.ParseRuns(data)
		if err != nil {
			return
		}
		c, err := backend.New(backend.Defaults(), backend.Settings{Exploration: backend.Optimism})
		if err != nil {
			t.Fatal(err)
		}
		for _, run := range runs {
			_ = c.Learn(run) // a run of an unknown backend is refused
		}
		choice, err := c.Choose(backend.Model{Operations: 1e9}, backend.Request{}, by(map[backend.Criterion]float64{"latency": 1, "energy": 1}, nil))
		if err != nil {
			t.Fatal(err)
		}
		if _, err := json.Marshal(choice); err != nil {
			t.Fatalf("the choice cannot be written: %v", err)
		}
	})
}

func TestModelsAreReadStrictly(t *testing.T) {
	if model, err := backend.ParseModel([]byte(`{"name":"m","operations":5,"accuracy":0.7}`)); err != nil || model.Operations != 5 {
		t.Errorf("%v %+v", err, model)
	}
	for _, bad := range []string{`{`, `{"flops":5}`, `{"operations":-5}`, `{"quantized":2}`, `[]`, `{} {}`} {
		if _, err := backend.ParseModel([]byte(bad)); err == nil {
			t.Errorf("%s was read", bad)
		}
	}
}

func TestProfilesAreReadFromYAMLAndJSON(t *testing.T) {
	want := []backend.Profile{{Name: "pi", Cores: 4, MemoryBytes: 1e9, IdleWatts: 2.5, LoadWatts: 6}}
	for _, text := range []string{
		"backends:\n  - name: pi\n    cores: 4\n    memory_bytes: 1e9\n    idle_watts: 2.5\n    load_watts: 6\n",
		`{"backends": [{"name": "pi", "cores": 4, "memory_bytes": 1e9, "idle_watts": 2.5, "load_watts": 6}]}`,
	} {
		if got, err := backend.ParseProfiles([]byte(text)); err != nil || !reflect.DeepEqual(got, want) {
			t.Errorf("%v: %+v", err, got)
		}
	}
	for text, message := range map[string]string{
		"backends:\n  - name: pi\n    cores: 4\n    memory: 1\n":       "memory",
		"backends:\n  - name: pi\n    cores: 0\n    memory_bytes: 1\n": "cores",
		"backends: []": "0 backends",
		"backends:\n  - {name: pi, cores: 1, memory_bytes: 1, gpus: 1}\n":                                      "gpu_memory_bytes",
		"backends:\n  - {name: pi, cores: 1, memory_bytes: 1, idle_watts: 5, load_watts: 1}\n":                 "idle_watts",
		"backends:\n  - {name: pi, cores: 1, memory_bytes: 1}\n  - {name: pi, cores: 1, memory_bytes: .nan}\n": "memory_bytes",
	} {
		if _, err := backend.ParseProfiles([]byte(text)); err == nil || !strings.Contains(err.Error(), message) {
			t.Errorf("%q: got %v, want %q", text, err, message)
		}
	}
}

func TestFeaturesOfAGraph(t *testing.T) {
	tensor := func(name string, elements int64) graph.Tensor {
		return graph.Tensor{Name: name, Type: graph.Float32, Shape: []int64{elements}, Batched: true}
	}
	g := graph.Graph{Name: "net", Inputs: []graph.Tensor{tensor("x", 10)}, Outputs: []graph.Tensor{tensor("y", 5)},
		Tensors: map[string]graph.Tensor{"x": tensor("x", 10), "a": tensor("a", 100), "b": tensor("b", 20), "y": tensor("y", 5)},
		Operators: []graph.Operator{
			{Class: graph.Convolution, Type: graph.Int8, Inputs: []string{"x"}, Outputs: []string{"a"}, Operations: 300, ReadBytes: 40, WrittenBytes: 400, WeightBytes: 12, Parameters: 3},
			{Class: graph.Pooling, Type: graph.Float32, Inputs: []string{"a"}, Outputs: []string{"b"}, Operations: 100, ReadBytes: 400, WrittenBytes: 80},
			{Class: graph.Linear, Type: graph.Float32, Inputs: []string{"b"}, Outputs: []string{"y"}, Operations: 200, ReadBytes: 80, WrittenBytes: 20, WeightBytes: 400, Parameters: 100},
		}}
	want := backend.Model{Name: "net", Operations: 600, Parameters: 103, WeightBytes: 412, ActivationBytes: 1020, PeakBytes: 480, InputElements: 10, Quantized: 0.5,
		Layers: map[graph.Class]float64{graph.Convolution: 1, graph.Pooling: 1, graph.Linear: 1}}
	if got := backend.FromGraph(g); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v\nwant %+v", got, want)
	}
}
