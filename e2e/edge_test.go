package e2e_test

import (
	"encoding/json"
	"math"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

// newDeployedStudy is a study of a script that hands over a model, which will run
// on a Raspberry Pi and on this machine.
func newDeployedStudy(t *testing.T, name, model string) study {
	t.Helper()
	s := newStudy(t, name, "epochs, epochs: {min: 1, max: 3}, eta: 3", "0", 4)
	content, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	script, err := os.ReadFile("testdata/deployed.py")
	if err != nil {
		t.Fatal(err)
	}
	saved, err := os.ReadFile(model)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(filepath.Dir(s.file), "model.onnx")
	file := strings.NewReplacer("train.py", "deployed.py", "environment: {", "environment: {MODEL: "+path+", ").Replace(string(content)) +
		"inference: {devices: [raspberry-pi-4, this-machine], batch_size: {low: 1, high: 4}}\n"
	for path, data := range map[string][]byte{s.file: []byte(file), filepath.Join(filepath.Dir(s.file), "deployed.py"): script, path: saved} {
		if err := os.WriteFile(path, data, 0o600); err != nil {
			t.Fatal(err)
		}
	}
	return s
}

// TestTheWinnerComesWithItsDeployment saves a real model in real trials.
func TestTheWinnerComesWithItsDeployment(t *testing.T) {
	t.Parallel()
	here := newSite(t)
	// Where scripts/test has installed ONNX Runtime, the model really runs.
	libraries, err := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if err != nil {
		t.Fatal(err)
	}
	args := []string{"--slots", "1"}
	if len(libraries) > 0 {
		args = append(args, "--onnxruntime", libraries[0])
	}
	here.worker(args...)
	s := newDeployedStudy(t, "deployed", "../inference_emu/emulator/testdata/cnn.onnx")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	var answer protocol.Recommendation
	if err := json.Unmarshal([]byte(here.must("study", "recommend", s.name, "--json")), &answer); err != nil {
		t.Fatal(err)
	}
	if len(answer.Deployments) != 2 || answer.Deployments[0].Device != "raspberry-pi-4" || !answer.Deployments[0].Estimated() {
		t.Fatalf("%+v", answer.Deployments)
	}
	if own := answer.Deployments[1]; own.Estimated() != (len(libraries) == 0) {
		t.Errorf("with the libraries %v it is %+v on this machine; the log says\n%s", libraries, own, here.must("study", "log", s.name, "0"))
	}
	architectures := map[string]bool{}
	for _, one := range here.books(s.name).Trials {
		if one.Inference == nil {
			t.Errorf("trial %d has no model", one.Number)
			continue
		}
		architectures[one.Inference.Architecture] = true
	}
	if len(architectures) != 1 {
		t.Errorf("one model is the architectures %v", architectures)
	}
	if text := here.must("study", "deployments", s.name, "--trial", "0"); !strings.Contains(text, "raspberry-pi-4") || !strings.Contains(text, "J/SAMPLE") {
		t.Errorf("the deployments are\n%s", text)
	}
}

// TestABrokenModelFailsNoTrial hands over a file that is no model.
func TestABrokenModelFailsNoTrial(t *testing.T) {
	t.Parallel()
	here := newSite(t)
	here.worker("--slots", "1")
	s := newDeployedStudy(t, "broken", "edge_test.go")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	for _, one := range here.books(s.name).Trials {
		if one.Failures > 0 || one.Inference != nil {
			t.Errorf("trial %d: %d failures, %+v", one.Number, one.Failures, one.Inference)
		}
	}
	if log := here.must("study", "log", s.name, "0"); !strings.Contains(log, "the model was not emulated") {
		t.Errorf("the log says\n%s", log)
	}
}

// TestExampleForTheEdge runs the example that is tuned for where it will run, in
// small: a model of PyTorch that the script exports itself.
func TestExampleForTheEdge(t *testing.T) {
	t.Parallel()
	python := os.Getenv("TANDEM_EXAMPLE_PYTHON")
	if os.Getenv("TANDEM_EXAMPLE") != "lenet-fashion-mnist" || python == "" {
		t.Skip("it needs PyTorch: scripts/setup-python did not find it (TANDEM_EXAMPLE, TANDEM_EXAMPLE_PYTHON)")
	}
	folder, err := filepath.Abs("../examples/lenet-fashion-mnist")
	if err != nil {
		t.Fatal(err)
	}
	full, err := os.ReadFile(filepath.Join(folder, "edge.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	small := strings.NewReplacer("max: 9}", "max: 2}", "eta: 3", "eta: 2", "trials: 27", "trials: 3", "high: 16}", "high: 2}").Replace(string(full)) +
		"\ndirectory: " + folder + "\nenvironment: {FASHION_MNIST_DIR: sample}\n"
	file := filepath.Join(t.TempDir(), "edge.yaml")
	if err := os.WriteFile(file, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if err != nil {
		t.Fatal(err)
	}
	var environment []string
	if len(libraries) > 0 {
		environment = []string{"TANDEM_ONNXRUNTIME=" + libraries[0]}
	}
	got := cli(t, environment, "run", file, "--data", t.TempDir(), "--listen", "127.0.0.1:0", "--path", filepath.Dir(python), "--json")
	if got.code != 0 {
		t.Fatalf("exit code %d\n%s%s", got.code, got.stdout, got.stderr)
	}
	answer := read[result](t, got.stdout).Recommendation
	if len(answer.Deployments) != 2 || answer.Deployments[0].Device != "raspberry-pi-4" || answer.Deployments[1].Device != "this-machine" {
		t.Fatalf("the deployments are %+v\n%s", answer.Deployments, got.stderr)
	}
	if own := answer.Deployments[1]; own.Estimated() != (len(libraries) == 0) {
		t.Errorf("with the libraries %v it is %+v on this machine", libraries, own)
	}
	if answer.Best == nil || len(answer.Best.Values) != 2 {
		t.Fatalf("the best is %+v\n%s", answer.Best, got.stderr)
	}
	objective, deployed := float64(answer.Best.Values[1]), 1e3*answer.Deployments[0].LatencySeconds.Value
	if !(objective > 0) || math.Abs(objective/deployed-1) > 1e-6 {
		t.Errorf("the winner's latency is %v ms as an objective and %v ms in its deployment", objective, deployed)
	}
	if answer.Pareto == nil {
		t.Error("there is no front of accuracy and latency")
	}
}
