package edgecmd

import (
	"bytes"
	"encoding/json"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/backend"
)

// backendFiles writes a model, two backends and runs of both: the GPU takes 2 ms
// and 80 watts, the cores 1 ns for an operation and 4 watts.
func backendFiles(t *testing.T) (model, backends, runs string) {
	t.Helper()
	folder := t.TempDir()
	var lines strings.Builder
	for i := range 40 {
		operations := 1e6 * float64(1+i*i)
		fmt.Fprintf(&lines, `{"model":{"operations":%g},"request":{"batch":1},"backend":"cores","measured":{"latency_seconds":%g,"joules_per_inference":%g}}`+"\n", operations, 1e-9*operations, 4e-9*operations)
		fmt.Fprintf(&lines, `{"model":{"operations":%g},"request":{"batch":1},"backend":"gpu","measured":{"latency_seconds":0.002,"joules_per_inference":0.16}}`+"\n", operations)
	}
	write := func(name, content string) string {
		path := filepath.Join(folder, name)
		if err := os.WriteFile(path, []byte(content), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	return write("model.json", `{"name":"net","operations":1e8}`),
		write("backends.yaml", "backends:\n  - {name: cores, cores: 4, memory_bytes: 4e9}\n  - {name: gpu, cores: 2, memory_bytes: 4e9, gpus: 1, gpu_memory_bytes: 4e9}\n"),
		write("runs.jsonl", lines.String())
}

func TestEdgeBackend(t *testing.T) {
	model, backends, runs := backendFiles(t)
	for _, one := range []struct {
		name string
		args []string
		code int
		want []string
	}{
		{"fast", nil, 0, []string{"gpu is predicted best by the priorities: 2 ms", "GPU MEMORY", "+"}},
		{"little energy wins when it counts most", []string{"--priority", "latency=0.001,energy=1", "--limit", "energy<=0.5"}, 0, []string{"gpu is predicted best"}},
		{"a limit that only the cores keep", []string{"--limit", "energy<=0.001"}, 1, []string{"is above 0.001 J; gpu is ruled out, as energy 0.1", "no backend can be chosen: loosen"}},
		{"the cost is not known", []string{"--priority", "cost=1"}, 1, []string{"its profile has no cost_per_hour"}},
		{"an unknown criterion", []string{"--priority", "beauty=1"}, 2, []string{"the criteria are latency, accuracy, energy, cost"}},
		{"a limit the wrong way round", []string{"--limit", "accuracy<=0.7"}, 2, []string{"accuracy has a least value"}},
		{"runs of backends that are not described", []string{"--backends", ""}, 2, []string{`the backend "cores"`, "runs.jsonl"}},
		{"no rate below nothing", []string{"--rate", "-1"}, 2, []string{"rate"}},
	} {
		t.Run(one.name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			args := append([]string{"edge", "backend", "--model", model, "--backends", backends, "--runs", runs}, one.args...)
			if code := execute(t, args, &stdout, &stderr); code != one.code {
				t.Errorf("code %d, want %d", code, one.code)
			}
			for _, want := range one.want {
				if !strings.Contains(stdout.String()+stderr.String(), want) {
					t.Errorf("%q is not in\n%s%s", want, &stdout, &stderr)
				}
			}
		})
	}
}

func TestEdgeBackendForScripts(t *testing.T) {
	model, backends, runs := backendFiles(t)
	var stdout, stderr bytes.Buffer
	args := []string{"edge", "backend", "--json", "--model", model, "--backends", backends, "--runs", runs}
	if code := execute(t, args, &stdout, &stderr); code != 0 {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	var choice backend.Choice
	if err := json.Unmarshal(stdout.Bytes(), &choice); err != nil {
		t.Fatal(err)
	}
	if choice.Backend != "gpu" || len(choice.Options) != 2 || choice.Options[0].Runs != 40 {
		t.Errorf("%s", &stdout)
	}
}

// A model may come as ONNX: its graph has the features.
func TestEdgeBackendReadsONNX(t *testing.T) {
	_, backends, runs := backendFiles(t)
	args := []string{"edge", "backend", "--model", testModels + "lenet5.onnx", "--backends", backends, "--runs", runs, "--priority", "accuracy=1,latency=1"}
	var stdout, stderr bytes.Buffer
	if code := execute(t, append(args, "--accuracy", "0.91"), &stdout, &stderr); code != 0 {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	// 748 k operations are less than the 2 ms that the GPU always takes.
	for _, want := range []string{"cores is predicted best", "91.00%"} {
		if !strings.Contains(stdout.String(), want) {
			t.Errorf("%q is not in\n%s", want, &stdout)
		}
	}
	if code := execute(t, append(args, "--accuracy", "91"), &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "from 0 to 1") {
		t.Errorf("code %d: %s", code, &stderr)
	}
}

// Without runs the backends are tried one after the other.
func TestEdgeBackendStartsFromNothing(t *testing.T) {
	model, backends, _ := backendFiles(t)
	var stdout, stderr bytes.Buffer
	if code := execute(t, []string{"edge", "backend", "--model", model, "--backends", backends, "--explore", "optimism"}, &stdout, &stderr); code != 0 {
		t.Fatalf("code %d: %s", code, &stderr)
	}
	if !strings.Contains(stdout.String(), "cores is tried to learn about it, since it never ran") {
		t.Error(stdout.String())
	}
	if code := execute(t, []string{"edge", "backend", "--model", model}, &stdout, &stderr); code != 2 || !strings.Contains(stderr.String(), "--runs") {
		t.Errorf("code %d: %s", code, &stderr)
	}
}
