package edgecmd

import (
	"bytes"
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

func TestWhatCannotBeReadSaysWhy(t *testing.T) {
	text := filepath.Join(t.TempDir(), "text.onnx")
	if err := os.WriteFile(text, []byte("not a model"), 0o600); err != nil {
		t.Fatal(err)
	}
	litert := filepath.Join(t.TempDir(), "model.tflite")
	if err := os.WriteFile(litert, []byte("\x1c\x00\x00\x00TFL3\x14\x00"), 0o600); err != nil {
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
		"LiteRT":         {[]string{litert}, "tf2onnx.convert --tflite"},
		"too large":      {[]string{large}, "at most 2 GiB"},
		"a folder":       {[]string{t.TempDir()}, "is not a file"},
		"absent":         {[]string{"absent.onnx"}, "absent.onnx"},
		"open dimension": {[]string{testModels + "lstm.onnx"}, "--dimension"},
		"no size":        {[]string{testModels + "lstm.onnx", "--dimension", "steps=many"}, "steps=many"},
	} {
		t.Run(name, func(t *testing.T) {
			command := deployCommand()
			command.SetArgs(test.arguments)
			if err, usage := command.Execute(), (term.UsageError{}); !errors.As(err, &usage) || !strings.Contains(err.Error(), test.want) {
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
			if err := os.WriteFile(path, one.Content(), 0o600); err != nil {
				t.Fatal(err)
			}
			defer os.Remove(path)
			for _, command := range [][]string{{"deploy", path}, {"deploy", smallModel, "--device", "raspberry-pi-4", "--measured", path + "=" + runs}} {
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
