package e2e_test

import (
	"bytes"
	"compress/gzip"
	"context"
	idx "encoding/binary"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"sync/atomic"
	"testing"
	"time"
)

// tutorial is the script of a tutorial, a page of docs: its blocks of sh, and
// its files where they have a title, in their order. Blocks with a prompt
// (console) are for machines that a test has not.
func tutorial(t *testing.T, name string) string {
	t.Helper()
	content, err := os.ReadFile(filepath.Join("../docs", name))
	if err != nil {
		t.Fatal(err)
	}
	var script strings.Builder
	for _, block := range regexp.MustCompile("(?ms)^```(\\w+)(?: title=\"([^\"]+)\")?\n(.*?)^```$").FindAllStringSubmatch(string(content), -1) {
		language, file, text := block[1], block[2], block[3]
		switch {
		case file != "":
			fmt.Fprintf(&script, "cat > '%s' <<'END OF FILE'\n%sEND OF FILE\n", file, text)
		case language == "sh":
			script.WriteString(text)
		}
	}
	return script.String()
}

// classroom is a folder as a clone is after "make build".
func classroom(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	place := t.TempDir()
	if err := os.Mkdir(filepath.Join(place, "bin"), 0o700); err != nil {
		t.Fatal(err)
	}
	if err := os.Symlink(binary, filepath.Join(place, "bin", "tandem")); err != nil {
		t.Fatal(err)
	}
	if err := os.CopyFS(filepath.Join(place, "examples"), os.DirFS(filepath.Join(root, "examples"))); err != nil {
		t.Fatal(err)
	}
	return place
}

// ports counts those that tests were given, from a place of this run's own.
var ports atomic.Int64

func init() { ports.Store(rand.Int64N(10000)) }

// freePort is one that nobody listens on, below those that the kernel gives to
// clients. No other test of this run gets it: between this and the server's start
// nobody holds it.
func freePort(t testing.TB) int {
	t.Helper()
	for range 100 {
		port := 20000 + int(ports.Add(1))%10000
		if listener, err := net.Listen("tcp", fmt.Sprintf("127.0.0.1:%d", port)); err == nil {
			if err := listener.Close(); err != nil {
				t.Fatal(err)
			}
			return port
		}
	}
	t.Fatal("there is no free port from 20000 to 29999")
	return 0
}

// withPyTorch is a classroom after "scripts/setup-python" has found PyTorch.
func withPyTorch(t *testing.T, python string) string {
	t.Helper()
	place := classroom(t)
	// A copy: scripts do not see what lies elsewhere in the temporary folder.
	environment := filepath.Dir(filepath.Dir(python))
	if output, err := exec.CommandContext(t.Context(), "cp", "-a", environment, filepath.Join(place, ".venv")).CombinedOutput(); err != nil {
		t.Fatalf("%v: %s", err, output)
	}
	shortened(t, filepath.Join(place, "examples/lenet-fashion-mnist"))
	return place
}

// shortened leaves a tenth of the images to the example in the folder.
func shortened(t *testing.T, folder string) {
	t.Helper()
	files, err := filepath.Glob(filepath.Join(folder, "data/*.gz"))
	if err != nil || len(files) != 4 {
		t.Fatalf("the data are %v: %v", files, err)
	}
	for _, file := range files {
		shorten(t, file, 600)
	}
}

// shorten keeps the first images or labels of a compressed idx file.
func shorten(t *testing.T, file string, count int) {
	t.Helper()
	content, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	unpacked, err := gzip.NewReader(bytes.NewReader(content))
	if err != nil {
		t.Fatal(err)
	}
	head, each := 8, 1
	if strings.Contains(file, "images") {
		head, each = 16, 28*28
	}
	kept, err := io.ReadAll(io.LimitReader(unpacked, int64(head+count*each)))
	if err != nil || len(kept) != head+count*each {
		t.Fatalf("%s has %d bytes: %v", file, len(kept), err)
	}
	idx.BigEndian.PutUint32(kept[4:], uint32(count)) //nolint:gosec // a few hundred
	var packed bytes.Buffer
	writer := gzip.NewWriter(&packed)
	if _, err := writer.Write(kept); err != nil {
		t.Fatal(err)
	}
	if err := writer.Close(); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(file, packed.Bytes(), 0o600); err != nil {
		t.Fatal(err)
	}
}

// withOptuna is a classroom whose Python has Optuna and the client.
func withOptuna(t *testing.T) string {
	t.Helper()
	root, err := filepath.Abs("..")
	if err != nil {
		t.Fatal(err)
	}
	python := filepath.Join(root, ".venv-test", "bin", "python")
	if output, err := exec.CommandContext(t.Context(), python, "-c", "import optuna, numpy").CombinedOutput(); err != nil {
		t.Skipf("no Python with Optuna, which scripts/test installs: %v: %s", err, output)
	}
	place := classroom(t)
	shortened(t, filepath.Join(place, "examples/lenet-fashion-mnist"))
	folder := filepath.Join(place, ".venv", "bin")
	if err := os.MkdirAll(folder, 0o700); err != nil {
		t.Fatal(err)
	}
	wrapper := fmt.Sprintf("#!/bin/sh\nPYTHONPATH='%s' exec '%s' \"$@\"\n", filepath.Join(root, "clients", "python"), python)
	if err := os.WriteFile(filepath.Join(folder, "python"), []byte(wrapper), 0o700); err != nil { //nolint:gosec // a program
		t.Fatal(err)
	}
	return place
}

// follow runs the tutorials one after the other in the place, as somebody would
// who reads them in that order, and returns what the last one said.
func follow(t *testing.T, place string, names ...string) (said string) {
	t.Helper()
	port := freePort(t)
	for i, name := range names {
		script := tutorial(t, name)
		// Ports that nobody else has, as tests run beside each other, and fewer trials
		// where each of them loads PyTorch.
		script = strings.NewReplacer("7373", fmt.Sprint(port), "7374", fmt.Sprint(port), "tandem run ", "tandem run --listen 127.0.0.1:0 ",
			"stop: {trials: 20}", "stop: {trials: 3}", "stop: {trials: 12}", "stop: {trials: 3}").Replace(script)
		ctx, cancel := context.WithTimeout(t.Context(), 15*time.Minute) // a server that does not start is waited for in vain
		defer cancel()
		command := exec.CommandContext(ctx, "bash", "-c", "set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n"+script)
		command.Dir = place
		command.Env = append(os.Environ(), "HOME="+place, "NO_COLOR=1", "OPENBLAS_NUM_THREADS=1") // its products are small: a second thread only spins
		command.WaitDelay = 10 * time.Second
		output, err := command.CombinedOutput()
		said = string(output)
		if err != nil {
			logs, _ := filepath.Glob(filepath.Join(place, "*", "*.log"))
			for _, log := range logs {
				content, _ := os.ReadFile(log)
				t.Logf("%s:\n%s", filepath.Base(log), content)
			}
			t.Fatalf("%s, the %d. of them: %v\n%s", name, i+1, err, said)
		}
		t.Logf("%s:\n%s", name, said)
	}
	return said
}

func TestTheTutorialOnThreeBoxes(t *testing.T) {
	t.Parallel()
	said := follow(t, classroom(t), "tutorials/three-gpu-boxes.md")
	for _, wanted := range []string{"box-1", "box-2", "box-3", "Recommended: trial", "30 of 30 started", "with-a-loss"} {
		if !strings.Contains(said, wanted) {
			t.Errorf("it does not say %q", wanted)
		}
	}
}

func TestTheTutorialsOnPyTorchAndTheRaspberryPi(t *testing.T) {
	t.Parallel()
	if os.Getenv("TANDEM_EXAMPLE") != "lenet-fashion-mnist" {
		t.Skip("PyTorch is not set up: scripts/test does it, and says so in TANDEM_EXAMPLE")
	}
	recent := exec.CommandContext(t.Context(), os.Getenv("TANDEM_EXAMPLE_PYTHON"), "-c", "import sys, torch; sys.exit(tuple(map(int, torch.__version__.split('.')[:2])) >= (2, 9) and __import__('importlib.util').util.find_spec('onnxscript') is None)")
	if recent.Run() != nil {
		t.Skip("this PyTorch exports ONNX with onnxscript, which is not installed")
	}
	said := follow(t, withPyTorch(t, os.Getenv("TANDEM_EXAMPLE_PYTHON")), "tutorials/pytorch.md", "tutorials/raspberry-pi.md")
	for _, wanted := range []string{"Recommended: trial", "raspberry-pi-4", "clothes has infer.py and README.md for raspberry-pi-4, and model.onnx", "of study clothes-on-a-pi", "(estimate)"} {
		if !strings.Contains(said, wanted) {
			t.Errorf("it does not say %q", wanted)
		}
	}
}

// TestTheMoveFromOptuna runs a sweep by Optuna alone, goes on with it by the
// bridge, brings another one along, and takes it up a ladder.
func TestTheMoveFromOptuna(t *testing.T) {
	t.Parallel()
	said := follow(t, withOptuna(t), "optuna.md")
	for _, wanted := range []string{"12 trials, the best: 0.", "Trials are proposed by http://", "24 trials, the best: 0.", "18 trials, the best: 0.", "Recommended: trial"} {
		if !strings.Contains(said, wanted) {
			t.Errorf("it does not say %q", wanted)
		}
	}
	if strings.Contains(said, "Traceback") {
		t.Error("a script has failed")
	}
}
