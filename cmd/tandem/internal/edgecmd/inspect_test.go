package edgecmd

import (
	"bytes"
	"encoding/json"
	"errors"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/inference_emu/onnx/onnxtest"
	"github.com/tandem-tune/tandem/internal/problem"
)

const testModels = "../../../../inference_emu/onnx/testdata/"

func runInspect(t *testing.T, arguments ...string) (string, error) {
	t.Helper()
	command := inspectCommand()
	var out bytes.Buffer
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(arguments)
	err := command.Execute()
	return out.String(), err
}

// The numbers are those of the network's description: 748 k operations in
// convolutions and matrix products (28*28*6*25 + 10*10*16*150 + 400*40 + 40*10
// products), the rest in activations and poolings.
func TestAModelIsInspected(t *testing.T) {
	byClass, err := runInspect(t, testModels+"lenet5.onnx")
	for _, want := range []string{"convolution  2          715.2 k", "linear       2          32.8 k", "19,022 parameters, 74.3 KiB stored", "Architecture: ", "x float32 1x1x32x32"} {
		if err != nil || !strings.Contains(byClass, want) {
			t.Errorf("%q is not shown, %v\n%s", want, err, byClass)
		}
	}
	byOperator, err := runInspect(t, testModels+"lenet5.onnx", "--by", "operator", "--batch", "32")
	for _, want := range []string{"1x16x10x10", "15.36 M", "Gemm", "Batch:        32"} {
		if err != nil || !strings.Contains(byOperator, want) {
			t.Errorf("%q is not shown, %v\n%s", want, err, byOperator)
		}
	}
	asJSON, err := runInspect(t, testModels+"lstm.onnx", "--dimension", "steps=12", "--json", "--by", "operator")
	var got inspected
	if err != nil || json.Unmarshal([]byte(asJSON), &got) != nil || got.Cost.Parameters != 7844 || len(got.Operators) != got.Cost.Operators || len(got.Key) != 64 {
		t.Errorf("%v\n%s", err, asJSON)
	}
}

func TestWhatCannotBeInspectedSaysWhy(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.onnx")
	if err := os.WriteFile(text, []byte("not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	large := filepath.Join(t.TempDir(), "large.onnx")
	if err := os.WriteFile(large, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	if err := os.Truncate(large, 1<<31); err != nil { // sparse: it takes no room
		t.Fatal(err)
	}
	for name, test := range map[string]struct {
		arguments []string
		want      string
	}{
		"not a model":    {[]string{text}, "not an ONNX file"},
		"too large":      {[]string{large}, "at most 2 GiB"},
		"a folder":       {[]string{t.TempDir()}, "is not a file"},
		"absent":         {[]string{"absent.onnx"}, "absent.onnx"},
		"open dimension": {[]string{testModels + "lstm.onnx"}, "--dimension"},
		"no size":        {[]string{testModels + "lstm.onnx", "--dimension", "steps=many"}, "steps=many"},
		"by what":        {[]string{testModels + "lenet5.onnx", "--by", "colour"}, "class or operator"},
		"batch":          {[]string{testModels + "lenet5.onnx", "--batch", "0"}, "--batch 0"},
		"no file":        {nil, "one model file"},
	} {
		t.Run(name, func(t *testing.T) {
			_, err := runInspect(t, test.arguments...)
			if usage := (term.UsageError{}); !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
				t.Errorf("error %v, want one with %q", err, test.want)
			}
		})
	}
}

// What a hostile file is refused for is said in one line, whatever is asked of it, and
// the worker's look at a saved model says the same.
func TestHostileFilesAreRefusedInOneLine(t *testing.T) {
	folder := t.TempDir()
	runs := filepath.Join(folder, "runs.json")
	if err := os.WriteFile(runs, []byte(`{"cells":[{"batch":1,"threads":1}]}`), 0o600); err != nil {
		t.Fatal(err)
	}
	for i, one := range onnxtest.Hostile() {
		if one.Says == "" {
			continue
		}
		t.Run(one.Name, func(t *testing.T) {
			path := filepath.Join(folder, strconv.Itoa(i)+".onnx")
			if err := os.WriteFile(path, one.Content, 0o600); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
			for _, command := range [][]string{{"inspect", path}, {"deploy", path}, {"calibrate", "raspberry-pi-4", path + "=" + runs}} {
				var out, said bytes.Buffer
				code := execute(t, append([]string{"edge"}, command...), &out, &said)
				line := strings.TrimSpace(said.String())
				if code != 2 || out.Len() > 0 || strings.Count(line, "\n") > 0 || !strings.Contains(line, one.Says) || len(line) > 3000 {
					t.Errorf("%s: exit code %d, %d bytes, want a line with %q\n%.3000s", command[0], code, out.Len(), one.Says, line)
				}
			}
			file, err := os.Open(path)
			if err != nil {
				t.Fatal(err)
			}
			defer file.Close()
			if _, err := emulator.Inspect(t.Context(), file, nil); err == nil || !strings.Contains(err.Error(), one.Says) && !problem.Is(err, problem.Invalid) {
				t.Errorf("the worker's look: %.3000v", err)
			}
		})
	}
}
