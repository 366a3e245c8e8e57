package emulator_test

import (
	"context"
	"math/rand/v2"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnx/onnxtest"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/problem"
)

// library is ONNX Runtime, where scripts/test or the machine has it.
func library(t *testing.T) string {
	t.Helper()
	path, err := libraryHere()
	if err != nil {
		t.Skip(err)
	}
	return path
}

var libraryHere = sync.OnceValues(func() (string, error) {
	path, err := onnxruntime.Find(context.Background(), onnxruntime.Options{})
	if beside, _ := filepath.Glob("../../.venv-test/lib/python3*/site-packages/onnxruntime/capi"); err != nil && len(beside) > 0 {
		return onnxruntime.Find(context.Background(), onnxruntime.Options{Named: beside[0]})
	}
	return path, err
})

func contentOf(t *testing.T, name string) []byte {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("testdata", name))
	if err != nil {
		t.Fatal(err)
	}
	return content
}

// quick is a job that takes as little time as there can be.
func quick(t *testing.T, content []byte, cells ...emulator.Cell) emulator.Job {
	t.Helper()
	file, err := emulator.ModelOf(content)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { file.Close() })
	if len(cells) == 0 {
		cells = []emulator.Cell{{Batch: 1, Threads: 1}}
	}
	return emulator.Job{Model: file, Cells: cells, Library: library(t), Precision: emulator.Precision{Seconds: 0.1}, Limits: emulator.Limits{Wall: time.Minute}}
}

func TestCellsAreMeasured(t *testing.T) {
	job := quick(t, contentOf(t, "cnn.onnx"), emulator.Cell{Batch: 1, Threads: 1}, emulator.Cell{Batch: 8, Threads: 1}, emulator.Cell{Batch: 2, Threads: 2, Cores: 1})
	told := 0
	job.Progress = func(m emulator.Measurement) { told++ }
	result, err := emulator.Run(t.Context(), job)
	if err != nil {
		t.Fatal(err)
	}
	if len(result.Cells) != 3 || told != 3 {
		t.Fatalf("3 cells, got %d and %d were told", len(result.Cells), told)
	}
	for at, m := range result.Cells {
		l := m.Latency
		if ordered := []float64{0, l.Min, l.P50, l.P90, l.P99, l.Max}; !slices.IsSorted(ordered) || l.Min <= 0 {
			t.Errorf("cell %d: percentiles %v are out of order", at, ordered)
		}
		if l.MedianLow > l.P50 || l.MedianHigh < l.P50 {
			t.Errorf("cell %d: the median %g is outside of its interval %g to %g", at, l.P50, l.MedianLow, l.MedianHigh)
		}
		if want := []int64{int64(job.Cells[at].Batch), 1, 28, 28}; !slices.Equal(m.Inputs[0].Shape, want) {
			t.Errorf("cell %d ran with %v, want %v", at, m.Inputs[0].Shape, want)
		}
		if m.WarmUpRuns < 1 || m.LoadSeconds <= 0 || m.SamplesPerSecond <= 0 || m.CPUSecondsPerRun <= 0 || m.PeakBytes <= 0 {
			t.Errorf("cell %d: %+v", at, m)
		}
		if m.JoulesPerSample <= 0 || m.EnergyMethod == "" {
			t.Errorf("cell %d: %g joules by %q", at, m.JoulesPerSample, m.EnergyMethod)
		}
		if len(m.Assumed) > 0 {
			t.Errorf("cell %d: nothing is open but the batch, got %q", at, m.Assumed)
		}
	}
	if len(result.Cells[2].CoreNumbers) != 1 {
		t.Errorf("two threads were to share a core, they had %v", result.Cells[2].CoreNumbers)
	}
	if e := result.Environment; e.Runtime == "" || e.LibraryBytes <= 0 || len(e.Layers) == 0 {
		t.Errorf("got the environment %+v", e)
	}
}

// Broken and hostile files fail with the reason, and the next job runs.
func TestHostileModelsFailAlone(t *testing.T) {
	cnn := contentOf(t, "cnn.onnx")
	noise := make([]byte, 10_000)
	random := rand.NewChaCha8([32]byte{1})
	_, _ = random.Read(noise)
	small := emulator.Limits{MemoryBytes: 64 << 20, Wall: time.Minute}
	short := emulator.Limits{Wall: 1500 * time.Millisecond}
	tests := []struct {
		name    string
		content []byte
		limits  emulator.Limits
		code    problem.Code
		says    string
	}{
		{"truncated", cnn[:len(cnn)/2], small, problem.Invalid, "ONNX Runtime refuses"},
		{"random bytes", noise, small, problem.Invalid, "ONNX Runtime refuses"},
		{"weights elsewhere", outsideModel("../../../../../../etc/passwd"), small, problem.Invalid, "ONNX Runtime refuses"},
		{"weights at a path", outsideModel("/etc/passwd"), small, problem.Invalid, "ONNX Runtime refuses"},
		{"weights beside it", outsideModel("weights.bin"), small, problem.Invalid, "ONNX Runtime refuses"},
		{"unknown operator", unknownModel(), small, problem.Invalid, "NoSuchOperator"},
		{"operators of the future", futureModel(), small, problem.Invalid, "ONNX Runtime refuses"},
		{"gigabytes when it runs", greedyModel(), small, problem.Exhausted, "memory"},
		{"gigabytes of a constant", largeModel(1 << 34), small, problem.Exhausted, "memory"},
		{"endless loop", endlessModel(), short, problem.Exhausted, "longer than 1.5s"},
		{"too large a file", cnn, emulator.Limits{ModelBytes: 100}, problem.Exhausted, "at most 100"},
		{"empty", nil, small, problem.Invalid, "is empty"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := quick(t, test.content)
			job.Limits = test.limits
			result, err := emulator.Run(t.Context(), job)
			if !problem.Is(err, test.code) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("want %s with %q, got %v", test.code, test.says, err)
			}
			t.Log(err)
			if len(result.Cells) > 0 {
				t.Errorf("measured %+v", result.Cells)
			}
		})
	}
	if _, err := emulator.Run(t.Context(), quick(t, cnn)); err != nil {
		t.Errorf("a good model after them: %v", err)
	}
}

// The memory limit is the one that was set, neither a larger nor a much smaller
// one.
func TestTheMemoryLimitIsTheOneSet(t *testing.T) {
	job := quick(t, largeModel(16<<20)) // 64 MiB, and as many for the sum, and again for its copy
	job.Limits.MemoryBytes = 48 << 20
	if _, err := emulator.Run(t.Context(), job); !problem.Is(err, problem.Exhausted) {
		t.Errorf("64 MiB do not fit into 48, got %v", err)
	}
	job.Limits.MemoryBytes = 384 << 20
	result, err := emulator.Run(t.Context(), job)
	if err != nil {
		t.Fatalf("with 384 MiB: %v", err)
	}
	if peak := result.Cells[0].PeakBeyondLibraryBytes; peak < 64<<20 || peak > 384<<20 {
		t.Errorf("the peak is %d MiB", peak>>20)
	}
}

// What was measured before a failure is kept.
func TestMeasuredCellsSurviveAFailure(t *testing.T) {
	job := quick(t, contentOf(t, "fixed.onnx"), emulator.Cell{Batch: 1, Threads: 1}, emulator.Cell{Batch: 2, Threads: 1})
	result, err := emulator.Run(t.Context(), job)
	if !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), "no batch of 2") {
		t.Errorf("the model is of batch 1: got %v", err)
	}
	if len(result.Cells) != 1 {
		t.Errorf("one cell was measured, %d are kept", len(result.Cells))
	}
}

func TestOpenDimensionsAndIntegers(t *testing.T) {
	tests := []struct {
		name    string
		inputs  emulator.Inputs
		shape   []int64
		assumed string
		fails   string
	}{
		{name: "taken as 1, and said", shape: []int64{3, 1}, assumed: "length"},
		{name: "by name", inputs: emulator.Inputs{Dimensions: map[string]int64{"length": 7}}, shape: []int64{3, 7}},
		{name: "by place", inputs: emulator.Inputs{Dimensions: map[string]int64{"tokens:1": 6}}, shape: []int64{3, 6}},
		{name: "another batch", inputs: emulator.Inputs{BatchDimension: "length", Dimensions: map[string]int64{"batch": 2}}, shape: []int64{2, 3}},
		{name: "integers of the whole table", inputs: emulator.Inputs{IntegersBelow: 10, Dimensions: map[string]int64{"length": 100}}, shape: []int64{3, 100}},
		{name: "integers beyond it", inputs: emulator.Inputs{IntegersBelow: 1000, Dimensions: map[string]int64{"length": 100}}, fails: "ONNX Runtime refuses"},
		{name: "too large for the memory", inputs: emulator.Inputs{Dimensions: map[string]int64{"length": 1 << 40}}, fails: "memory limit"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			job := quick(t, contentOf(t, "words.onnx"), emulator.Cell{Batch: 3, Threads: 1})
			job.Inputs = test.inputs
			result, err := emulator.Run(t.Context(), job)
			if test.fails != "" {
				if err == nil || !strings.Contains(err.Error(), test.fails) {
					t.Errorf("want %q, got %v", test.fails, err)
				}
				return
			}
			if err != nil {
				t.Fatal(err)
			}
			m := result.Cells[0]
			if !slices.Equal(m.Inputs[0].Shape, test.shape) || m.Inputs[0].Type != "int64" {
				t.Errorf("got %+v, want %v", m.Inputs, test.shape)
			}
			if said := strings.Join(m.Assumed, " "); (test.assumed == "") != (said == "") || !strings.Contains(said, test.assumed) {
				t.Errorf("assumed %q", said)
			}
		})
	}
}

func TestShortFloatsAreMadeUp(t *testing.T) {
	result, err := emulator.Run(t.Context(), quick(t, contentOf(t, "half.onnx"), emulator.Cell{Batch: 4, Threads: 1}))
	if err != nil || result.Cells[0].Inputs[0].Type != "float16" {
		t.Errorf("got %v, %+v", err, result.Cells)
	}
}

func TestJobsThatCannotBeRun(t *testing.T) {
	tests := []struct {
		name   string
		change func(*emulator.Job)
		says   string
	}{
		{"no cells", func(j *emulator.Job) { j.Cells = nil }, "cells"},
		{"batch 0", func(j *emulator.Job) { j.Cells[0].Batch = 0 }, "cells[0].batch"},
		{"batch 101", func(j *emulator.Job) { j.Cells[0].Batch = 101 }, "cells[0].batch"},
		{"no threads", func(j *emulator.Job) { j.Cells[0].Threads = 0 }, "cells[0].threads"},
		{"more cores than there are", func(j *emulator.Job) { j.Cells[0].Cores = 100_000 }, "cells[0].cores"},
		{"no seconds", func(j *emulator.Job) { j.Precision.Seconds = -1 }, "precision"},
		{"a dimension of 0", func(j *emulator.Job) { j.Inputs.Dimensions = map[string]int64{"x": 0} }, "inputs.dimensions.x"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			file, err := emulator.ModelOf([]byte("x"))
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			job := emulator.Job{Model: file, Library: "/nowhere.so", Cells: []emulator.Cell{{Batch: 1, Threads: 1}}}
			test.change(&job)
			if _, err := emulator.Run(t.Context(), job); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), test.says) {
				t.Errorf("want a fault of %s, got %v", test.says, err)
			}
		})
	}
}

func TestACancelledJobEnds(t *testing.T) {
	job := quick(t, endlessModel())
	ctx, cancel := context.WithTimeout(t.Context(), 500*time.Millisecond)
	defer cancel()
	if _, err := emulator.Run(ctx, job); err != context.DeadlineExceeded {
		t.Errorf("the caller's own end comes back as it is, got %v", err)
	}
}

// What is too large for its limits is told before the library loads it.
func TestHostileModelsAreNotLoaded(t *testing.T) {
	for _, one := range onnxtest.Hostile() {
		says := one.Says
		if one.Runs != "" {
			says = one.Runs
		}
		if !strings.Contains(says, "more than 50000 operators") && !strings.Contains(says, "functions written out") && !strings.Contains(says, "within each other") && says != "--memory" {
			continue
		}
		t.Run(one.Name, func(t *testing.T) {
			job := quick(t, one.Content())
			if _, err := emulator.Run(t.Context(), job); !problem.Is(err, problem.Exhausted) || !strings.Contains(err.Error(), says) || !strings.Contains(err.Error(), "not loaded") {
				t.Errorf("%v, want %q", err, says)
			}
		})
	}
}

// A model of another format is told to be one: the library would say that parsing failed.
func TestAModelOfAnotherFormatIsNotLoaded(t *testing.T) {
	for content, says := range map[string]string{"\x1c\x00\x00\x00TFL3\x14\x00\x20\x00": "this is a LiteRT (TensorFlow Lite) file", "no model": "ONNX Runtime refuses"} {
		if _, err := emulator.Run(t.Context(), quick(t, []byte(content))); !problem.Is(err, problem.Invalid) || !strings.Contains(err.Error(), says) {
			t.Errorf("%q: %v, want %q", content, err, says)
		}
	}
}
