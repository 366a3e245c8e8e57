package e2e_test

import (
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// TestAModelIsDeployedByItsBestProvider has two boards and a worker measure a model: those that
// can use OpenVINO by that as well, and the answer follows from what they measured. The other
// board says that it cannot.
func TestAModelIsDeployedByItsBestProvider(t *testing.T) {
	t.Parallel()
	with, _ := filepath.Glob("../.venv-openvino/lib/python3*/site-packages/onnxruntime/capi")
	without, _ := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if len(with) == 0 || len(without) == 0 {
		t.Skip("needs what scripts/test installs, and: python3 -m venv .venv-openvino; .venv-openvino/bin/pip install onnxruntime-openvino==1.24.1 numpy")
	}
	here := newSite(t)
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(here.must("token", "create", "--scope", "device", "--name", "lab")), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, library := range map[string]string{"with": with[0], "without": without[0]} {
		agent, err := launch.Start(binary, []string{"TANDEM_SERVER=http://" + here.listen}, "edge", "agent", "--token-file", token, "--device", name, "--name", name, "--onnxruntime", library, "--seconds", "0.3")
		if err != nil {
			t.Fatal(err)
		}
		endsWith(t, agent)
	}
	until(t, "two boards", func() bool { return len(read[emu.Boards](t, here.must("edge", "boards", "--json")).Boards) == 2 })
	if said := here.must("edge", "boards"); strings.Count(said, "cpu, openvino") != 1 {
		t.Errorf("the boards are\n%s", said)
	}
	s := newDeployedStudy(t, "provided", "../inference_emu/emulator/testdata/cnn.onnx", "board/with, board/without, this-machine")
	s.rewrite("high: 4}}", "high: 4}, providers: auto}")
	here.must("study", "create", s.file)
	here.worker("--slots", "1", "--onnxruntime", with[0])
	here.must("study", "watch", s.name)
	var found []deployment.Deployment
	until(t, "models measured by both", func() bool {
		found = read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json")).Deployments
		return len(found) == 3 && !found[1].Estimated() && both(found[0]) && both(found[2])
	})
	for _, one := range []deployment.Deployment{found[0], found[2]} {
		cpu, openvino := one.Precisions[0], one.Precisions[1]
		if openvino.Chosen != (one.Configuration.Provider == emu.OpenVINO) || openvino.Chosen && openvino.Measured.LatencySeconds.Value >= cpu.Measured.LatencySeconds.Value ||
			cpu.Chosen && openvino.Measured.LatencySeconds.High < cpu.Measured.LatencySeconds.Low/2 {
			t.Errorf("%s: %s is recommended: %s; %s", one.Device, one.Configuration.Provider, cpu, openvino)
		}
	}
	if lacks := found[1]; lacks.Configuration.Provider != emu.CPU || lacks.Precisions[1].Measured != nil || !strings.Contains(lacks.Precisions[1].Why, "no machine of the device says") {
		t.Errorf("without OpenVINO: %+v", lacks.Precisions)
	}
	for _, one := range []deployment.Deployment{found[0], found[1]} {
		folder := filepath.Join(t.TempDir(), "deployment")
		here.must("study", "deployments", s.name, "--output", folder, "--device", one.Device)
		if text, err := os.ReadFile(filepath.Join(folder, "README.md")); err != nil || !strings.Contains(string(text), "pip install "+one.Package()+" numpy") {
			t.Errorf("it says\n%s (%v)", text, err)
		}
		program := filepath.Join(folder, "infer.py")
		for environment, runs := range map[string]bool{".venv-openvino": true, ".venv-test": one.Package() == "onnxruntime"} {
			python := filepath.Join("..", environment, "bin", "python")
			said, err := exec.Command(python, program, "../inference_emu/emulator/testdata/cnn.onnx").CombinedOutput()
			if (err == nil) != runs || !runs && !strings.Contains(string(said), "pip install onnxruntime-openvino") {
				t.Errorf("the program by %s in %s: %v\n%s", one.Configuration.Provider, environment, err, said)
			}
		}
	}
}

// both reports whether the model was measured by both providers.
func both(one deployment.Deployment) bool {
	return len(one.Precisions) == 2 && one.Precisions[0].Measured != nil && one.Precisions[1].Measured != nil
}
