package emulator_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/problem"
)

func put(t *testing.T, path, content string) string {
	t.Helper()
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, []byte(content), 0o755); err != nil {
		t.Fatal(err)
	}
	return path
}

// Libraries that are none, or end the process, are named.
func TestUnusableLibraries(t *testing.T) {
	tests := []struct{ name, source, says string }{
		{"no library", "", "cannot be used"},
		{"another library", "int nothing;", "OrtGetApiBase"},
		{"one that crashes", "void __attribute__((constructor)) loaded(void) { __builtin_trap(); }", "loading it ended the process"},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			path := put(t, filepath.Join(t.TempDir(), "libonnxruntime.so"), "none")
			if test.source != "" {
				source := put(t, filepath.Join(t.TempDir(), "library.c"), test.source)
				if said, err := exec.Command("cc", "-shared", "-fPIC", "-o", path, source).CombinedOutput(); err != nil {
					t.Skipf("no C compiler: %v %s", err, said)
				}
			}
			model, err := emulator.ModelOf(contentOf(t, "fixed.onnx"))
			if err != nil {
				t.Fatal(err)
			}
			defer model.Close()
			_, err = emulator.Run(t.Context(), emulator.Job{Model: model, Library: path, Cells: []emulator.Cell{{Batch: 1, Threads: 1}}})
			if !problem.Is(err, problem.NotFound) || !strings.Contains(err.Error(), test.says) || !strings.Contains(err.Error(), path) {
				t.Errorf("want %q and the path, got %v", test.says, err)
			}
		})
	}
}

func TestCapabilitiesRunAModel(t *testing.T) {
	here := emulator.Capabilities(t.Context(), onnxruntime.Options{Named: library(t)})
	for _, c := range here {
		if !c.Available || c.Detail == "" {
			t.Errorf("%+v", c)
		}
	}
	for _, c := range emulator.Capabilities(t.Context(), onnxruntime.Options{Named: "/nowhere.so"}) {
		if c.Available || c.Reason == "" {
			t.Errorf("without a library: %+v", c)
		}
	}
}

// TestCapabilitiesWithoutALibrary: what is lacking, what that costs, and how to get it.
func TestCapabilitiesWithoutALibrary(t *testing.T) {
	t.Setenv(onnxruntime.Variable, "")
	t.Setenv("LD_LIBRARY_PATH", "")
	for reason, options := range map[string]onnxruntime.Options{
		"there is no libonnxruntime.so in": {Root: t.TempDir(), Python: "/nowhere/python3"},
		"--onnxruntime names /nowhere.so":  {Named: "/nowhere.so"},
	} {
		found := emulator.Capabilities(t.Context(), options)
		if len(found) != 2 || !strings.Contains(found[0].Reason, reason) || strings.Contains(found[0].Reason, onnxruntime.HowToInstall) ||
			!strings.HasPrefix(found[0].Remedy, onnxruntime.HowToInstall) || !strings.Contains(found[0].Remedy, "stays an estimate") ||
			!strings.Contains(found[1].Reason, "needs ONNX Runtime") || found[1].Remedy == "" {
			t.Errorf("%+v", found)
		}
	}
}
