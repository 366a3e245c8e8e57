package edgecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
)

const smallModel = "../../../../inference_emu/emulator/testdata/cnn.onnx"

// withONNXRuntime names the library that scripts/test installs, or skips.
func withONNXRuntime(t *testing.T) {
	t.Helper()
	if _, err := onnxruntime.Find(t.Context(), onnxruntime.Options{}); err == nil {
		return
	}
	found, _ := filepath.Glob("../../../../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if len(found) == 0 {
		t.Skip("ONNX Runtime is not installed: " + onnxruntime.HowToInstall)
	}
	t.Setenv(onnxruntime.Variable, found[0])
}

// The runtime's words do not say what to do: the file does.
func TestAFailedRunSaysWhatTheFileLeavesOpen(t *testing.T) {
	withONNXRuntime(t)
	_, err := said(t, "run", "../../../../inference_emu/onnx/testdata/segmenter.onnx", "--batch", "1", "--threads", "1", "--seconds", "0.05")
	if err == nil || !strings.Contains(err.Error(), "Concat") || !strings.Contains(err.Error(), "--dimension") || !strings.Contains(err.Error(), `"height"`) {
		t.Errorf("%v", err)
	}
}

func TestWeightsInAnotherFileAreToldApart(t *testing.T) {
	tensor := []byte{8, 1, 16, 1, 66, 1, 'w', 112, 1} // one float "w" whose data_location (14) is another file (1)
	file := append([]byte{58, byte(len(tensor) + 2), 42, byte(len(tensor))}, tensor...)
	path := filepath.Join(t.TempDir(), "outside.onnx")
	if err := os.WriteFile(path, file, 0o600); err != nil {
		t.Fatal(err)
	}
	failed := errors.New("no such file")
	if err := whyNot(path, nil, failed); !errors.Is(err, failed) || !strings.Contains(err.Error(), "save_as_external_data=False") {
		t.Errorf("%v", err)
	}
	if err := whyNot(smallModel, nil, failed); err != failed { //nolint:errorlint // it is the same
		t.Errorf("a file with all its weights: %v", err)
	}
}

func TestEdgeRunAsJSON(t *testing.T) {
	withONNXRuntime(t)
	var stdout, stderr bytes.Buffer
	code := execute(t, []string{"edge", "run", smallModel, "--batch", "4,1,4", "--threads", "1,2", "--cores", "1", "--seconds", "0.05", "--json"}, &stdout, &stderr)
	var got edgeRun
	if err := json.Unmarshal(stdout.Bytes(), &got); err != nil || code != term.ExitOK {
		t.Fatalf("ended with %d, %v: %s", code, err, &stderr)
	}
	if len(got.Cells) != 4 {
		t.Errorf("two batch sizes with two numbers of threads, got %d cells", len(got.Cells))
	}
	if strings.Count(stderr.String(), " a run\n") != 4 {
		t.Errorf("progress: %s", &stderr)
	}
}

func TestEdgeRunAsTable(t *testing.T) {
	withONNXRuntime(t)
	var stdout, stderr bytes.Buffer
	if code := execute(t, []string{"edge", "run", smallModel, "--seconds", "0.05", "--provider", "all"}, &stdout, &stderr); code != term.ExitOK || !strings.Contains(stderr.String(), "not measured with openvino: ") {
		t.Fatalf("ended with %d: %s", code, &stderr)
	}
	for _, wanted := range []string{"cpu", "P99", "J/SAMPLE", "ONNX Runtime 1.", "float32[1 1 28 28]", "Held by: limits, no new privileges, memory"} {
		if !strings.Contains(stdout.String(), wanted) {
			t.Errorf("no %q in %s", wanted, &stdout)
		}
	}
}

func TestEdgeRunOfABrokenModel(t *testing.T) {
	withONNXRuntime(t)
	path := filepath.Join(t.TempDir(), "broken.onnx")
	if err := os.WriteFile(path, []byte("this is no model"), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		says      string
	}{
		"broken":         {[]string{path}, "ONNX Runtime refuses"},
		"not there":      {[]string{path + "x"}, "no such file"},
		"no size":        {[]string{path, "--memory", "much"}, "512MiB"},
		"a folder":       {[]string{filepath.Dir(path)}, "is not a file"},
		"no such batch":  {[]string{path, "--batch", "0"}, "batch"},
		"no provider":    {[]string{path, "--provider", "openvino"}, "the Python package onnxruntime-openvino has both"},
		"bad dimension":  {[]string{path, "--dimension", "length=-1"}, "inputs.dimensions.length"},
		"larger than ok": {[]string{path, "--model-size", "8B"}, "at most 8 are allowed"},
	} {
		t.Run(name, func(t *testing.T) {
			var stdout, stderr bytes.Buffer
			code := execute(t, append([]string{"edge", "run"}, test.arguments...), &stdout, &stderr)
			if code == term.ExitOK || !strings.Contains(stderr.String(), test.says) {
				t.Errorf("ended with %d: %s", code, &stderr)
			}
		})
	}
}

func TestByteSizes(t *testing.T) {
	for text, want := range map[string]byteSize{"512MiB": 512 << 20, "2GiB": 2 << 30, "1.5KiB": 1536, "100": 100, "7B": 7} {
		var got byteSize
		if err := got.Set(text); err != nil || got != want {
			t.Errorf("%s is %d, %v", text, got, err)
		}
	}
	for _, text := range []string{"", "-1MiB", "0", "NaN", "1e30GiB", "5MB"} {
		var got byteSize
		if got.Set(text) == nil {
			t.Errorf("%q was taken as %d", text, got)
		}
	}
	if shown := byteSize(1 << 31).String(); shown != "2GiB" {
		t.Errorf("got %s", shown)
	}
}
