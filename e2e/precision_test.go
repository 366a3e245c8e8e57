package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// TestAModelIsDeployedInItsBestPrecision has ONNX Runtime quantize a network, the script judge
// what that leaves of it, and the worker measure all of it: the answer is what follows from
// those numbers. Where eight bits lose what the network is worth, it stays as it was trained.
func TestAModelIsDeployedInItsBestPrecision(t *testing.T) {
	t.Parallel()
	python, err := filepath.Abs("../.venv-test/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if said, err := exec.Command(python, "-c", "import onnx, onnxruntime.quantization").CombinedOutput(); err != nil {
		t.Skipf("scripts/test installs onnx and ONNX Runtime, with which models are quantized: %s%v", said, err)
	}
	script, err := os.ReadFile("testdata/quantized.py")
	if err != nil {
		t.Fatal(err)
	}
	libraries, err := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if err != nil || len(libraries) == 0 {
		t.Fatal("onnxruntime has no library", err)
	}
	here := newSite(t)
	here.worker("--slots", "1", "--onnxruntime", libraries[0], "--path", filepath.Dir(python))
	for name, environment := range map[string]string{"quantized": "", "outlier": "OUTLIER: yes, "} {
		s := newStudy(t, name, "epochs, epochs: {min: 1, max: 3}, eta: 3", "0", 4)
		if err := os.WriteFile(filepath.Join(filepath.Dir(s.file), "train.py"), script, 0o600); err != nil {
			t.Fatal(err)
		}
		s.rewrite("environment: {", "environment: {"+environment)
		file, err := os.ReadFile(s.file)
		if err != nil {
			t.Fatal(err)
		}
		if err := os.WriteFile(s.file, append(file, "inference: {devices: [this-machine, raspberry-pi-4], precision: [int8, int8-dynamic]}\n"...), 0o600); err != nil {
			t.Fatal(err)
		}
		here.must("study", "create", s.file)
		here.must("study", "watch", s.name)
		var answer protocol.Recommendation
		until(t, "measured precisions", func() bool {
			answer = read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
			return len(answer.Deployments) == 2 && len(answer.Deployments[0].Precisions) == 3 && !slices.ContainsFunc(answer.Deployments[0].Precisions, func(one deployment.ComparedPrecision) bool { return one.Measured == nil })
		})
		checkPrecisions(t, answer.Deployments, environment != "")
		for _, one := range here.books(s.name).Trials {
			if full := len(one.Results) == 2; full != (len(one.Precisions) == 3) {
				t.Errorf("trial %d with %d results has %+v", one.Number, len(one.Results), one.Precisions)
			}
		}
		checkSavedPrecision(t, here, s.name, answer)
	}
}

// checkPrecisions looks at whether the answers follow from their numbers.
func checkPrecisions(t *testing.T, found []deployment.Deployment, outlier bool) {
	t.Helper()
	own, board := found[0], found[1]
	best := own.Precisions[0]
	for _, one := range own.Precisions[1:] {
		kept := one.Value >= 0.99*best.Value
		if one.Precision == trial.Int8 && outlier == kept {
			t.Errorf("with an outlier (%v), int8 is worth %v of %v", outlier, one.Value, best.Value)
		}
		if one.Samples != 200 || one.Chosen && (!kept || one.Measured.LatencySeconds.Value >= own.Precisions[0].Measured.LatencySeconds.Value) {
			t.Errorf("%s is chosen over %s", one, own.Precisions[0])
		}
		if !one.Chosen && own.Precisions[0].Chosen && kept && one.Measured.LatencySeconds.High < own.Precisions[0].Measured.LatencySeconds.Low/2 {
			t.Errorf("%s is not chosen over %s", one, own.Precisions[0])
		}
	}
	if board.Configuration.Precision != trial.FP32 || !board.Estimated() {
		t.Errorf("where nothing was measured it is in %s", board.Configuration.Precision)
	}
	for _, one := range board.Precisions[1:] {
		if kept := one.Value >= 0.99*best.Value; one.Measured != nil || strings.Contains(one.Why, "estimates do not rank precisions") != kept {
			t.Errorf("where nothing was measured it says %s", one)
		}
	}
}

// checkSavedPrecision looks at whether the model that is saved is in the precision.
func checkSavedPrecision(t *testing.T, here *site, study string, answer protocol.Recommendation) {
	t.Helper()
	folder := filepath.Join(t.TempDir(), "deployment")
	here.must("study", "deployments", study, "--output", folder, "--trial", "0", "--device", "this-machine")
	folder = filepath.Join(t.TempDir(), "deployment")
	here.must("study", "deployments", study, "--output", folder, "--device", "this-machine")
	saved, err := os.ReadFile(filepath.Join(folder, "model.onnx"))
	if err != nil {
		t.Fatal(err)
	}
	chosen := answer.Deployments[0].Configuration.Precision
	for precision, kind := range map[string]string{trial.Int8: "DequantizeLinear", trial.Int8Dynamic: "MatMulInteger"} {
		if strings.Contains(string(saved), kind) != (chosen == precision) {
			t.Errorf("in %s the model has %s", chosen, kind)
		}
	}
	if text := here.must("study", "deployments", study); !strings.Contains(text, chosen+" is worth ") || !strings.Contains(text, "on 200 samples") {
		t.Errorf("it says\n%s", text)
	}
}
