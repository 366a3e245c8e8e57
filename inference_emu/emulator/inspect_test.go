package emulator_test

import (
	"bytes"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/graph/graphtest"
	"github.com/tandem-tune/tandem/inference_emu/onnx"
	"github.com/tandem-tune/tandem/internal/problem"
)

// kept is a file with the content.
func kept(t *testing.T, content []byte) *os.File {
	t.Helper()
	path := filepath.Join(t.TempDir(), "model.onnx")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	file, err := os.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { _ = file.Close() })
	return file
}

func TestAnArchitectureIsReadInTheSandbox(t *testing.T) {
	content, err := os.ReadFile("../onnx/testdata/lenet5.onnx")
	if err != nil {
		t.Fatal(err)
	}
	want, err := onnx.Read(content, onnx.Options{})
	if err != nil {
		t.Fatal(err)
	}
	found, err := emulator.Inspect(t.Context(), kept(t, content), nil)
	if err != nil {
		t.Fatal(err)
	}
	if found.Key != want.Key() || found.ActivationBytes != want.PeakActivations(1) || graphtest.CostOf(found.Graph, 1).Operations != graphtest.CostOf(want, 1).Operations {
		t.Errorf("%s, %d bytes, %d operations; want %s, %d, %d", found.Key, found.ActivationBytes, graphtest.CostOf(found.Graph, 1).Operations,
			want.Key(), want.PeakActivations(1), graphtest.CostOf(want, 1).Operations)
	}
	if !slices.ContainsFunc(found.Layers, func(l emulator.Layer) bool { return l.Active && l.Name != "limits" && l.Name != "memory" }) {
		t.Errorf("it was locked in by %+v only", found.Layers)
	}
}

func TestWhatIsNoModelIsRefusedWithTheReason(t *testing.T) {
	lenet, err := os.ReadFile("../onnx/testdata/lenet5.onnx")
	if err != nil {
		t.Fatal(err)
	}
	for name, content := range map[string][]byte{
		"words": []byte("this is no model"), "zeros": make([]byte, 4096), "half": lenet[:len(lenet)/2], "empty": nil,
		"no operators": model(13, value(11, "x", float32s, 1), value(12, "y", float32s, 1)),
		"garbage":      bytes.Repeat([]byte{0x0a, 0xff, 0xff, 0xff, 0xff, 0x0f}, 1000),
	} {
		if _, err := emulator.Inspect(t.Context(), kept(t, content), nil); !problem.Is(err, problem.Invalid) && !problem.Is(err, problem.Exhausted) || strings.Contains(err.Error(), "panic") {
			t.Errorf("%s: %v", name, err)
		}
	}
}
