package e2e_test

import (
	"math"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/e2e/launch"
	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/onnx/onnxtest"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// newDeployedStudy is a study of a script that hands over a model, which will run
// on these devices.
func newDeployedStudy(t *testing.T, name, model, devices string) study {
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
		"inference: {devices: [" + devices + "], batch_size: {low: 1, high: 4}}\n"
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
	s := newDeployedStudy(t, "deployed", "../inference_emu/emulator/testdata/cnn.onnx", "raspberry-pi-4, this-machine")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	var answer protocol.Recommendation
	until(t, "the answer for both devices", func() bool {
		answer = read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
		return len(answer.Deployments) == 2 && (len(libraries) == 0 || !answer.Deployments[1].Estimated())
	})
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
	folder := filepath.Join(t.TempDir(), "deployment")
	said := here.must("study", "deployments", s.name, "--output", folder)
	checkSaved(t, folder, said, answer.Deployments[0], "")
	if text := here.must("study", "deployments", s.name, "--trial", "0"); !strings.Contains(text, "raspberry-pi-4") || !strings.Contains(text, "J/SAMPLE") {
		t.Errorf("the deployments are\n%s", text)
	}
}

// TestAModelRunsWhereItsMemoryMatters has a real model run here for a device that is not: it
// takes more than the study allows, which weights and activations alone do not.
func TestAModelRunsWhereItsMemoryMatters(t *testing.T) {
	t.Parallel()
	libraries, err := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if err != nil || len(libraries) == 0 {
		t.Skip("scripts/test has not installed ONNX Runtime")
	}
	here := newSite(t)
	here.worker("--slots", "1", "--onnxruntime", libraries[0])
	s := newDeployedStudy(t, "memory", "../inference_emu/emulator/testdata/cnn.onnx", "raspberry-pi-4")
	s.rewrite("batch_size: {low: 1, high: 4}", "batch_size: {low: 1, high: 4}, memory_mib: 4")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	until(t, "what the model takes here", func() bool {
		found := read[protocol.Deployments](t, here.must("study", "deployments", s.name, "--trial", "0", "--json"))
		return !found.Devices[0].Runs() && strings.Contains(found.Devices[0].Unmet[0], " MiB by a run, more than the 4 MiB")
	})
}

// checkSaved looks at the folder that was saved for the deployment, with the trained model.
func checkSaved(t *testing.T, folder, said string, want deployment.Deployment, trained string) {
	t.Helper()
	files := map[string]string{}
	entries, err := os.ReadDir(folder)
	if err != nil {
		t.Fatal(err)
	}
	for _, one := range entries {
		content, err := os.ReadFile(filepath.Join(folder, one.Name()))
		if err != nil {
			t.Fatal(err)
		}
		files[one.Name()] = string(content)
	}
	model, has := files["model.onnx"]
	if has != (trained != "") || model != trained || strings.Contains(said, "logged no trained model") == has {
		t.Errorf("a model of %d bytes was saved, want %d; it says %s", len(model), len(trained), said)
	}
	if files["infer.py"] != want.Code || !strings.Contains(files["README.md"], want.Device) || !strings.Contains(files["README.md"], "accuracy 0.") {
		t.Errorf("the program is\n%s\nand the README\n%s", files["infer.py"], files["README.md"])
	}
}

// TestTheTrainedModelIsSaved has a script log what it trained, of more than other files may
// have: the winner's comes back with the program for the device that is asked for.
func TestTheTrainedModelIsSaved(t *testing.T) {
	t.Parallel()
	here := newSite(t)
	here.worker("--slots", "1")
	s := newDeployedStudy(t, "trained", "../inference_emu/emulator/testdata/cnn.onnx", "raspberry-pi-3b-plus, raspberry-pi-4")
	weights := strings.Repeat("weights!", 9<<17)
	path := filepath.Join(filepath.Dir(s.file), "trained.onnx")
	if err := os.WriteFile(path, []byte(weights), 0o600); err != nil {
		t.Fatal(err)
	}
	s.rewrite("environment: {", "environment: {TRAINED: "+path+", ")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	answer := read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
	folder := filepath.Join(t.TempDir(), "deployment")
	said := here.must("study", "deployments", s.name, "--output", folder, "--device", "raspberry-pi-4")
	checkSaved(t, folder, said, answer.Deployments[1], weights)
	if refused := here.cli("study", "deployments", s.name, "--output", folder+"-2", "--device", "a-toaster"); refused.code == 0 || !strings.Contains(refused.stderr, "there is one for raspberry-pi-3b-plus, raspberry-pi-4") {
		t.Errorf("of an unknown device it says %s", refused.stderr)
	}
	if refused := here.cli("study", "deployments", s.name, "--output", folder); refused.code == 0 || !strings.Contains(refused.stderr, "name a new folder") {
		t.Errorf("over a folder that is there it says %s", refused.stderr)
	}
}

// TestAFixedBatchIsAnswered hands over a file that takes 8 samples at a time, where the
// study asks for batches of 1 to 4: no other batch can run.
func TestAFixedBatchIsAnswered(t *testing.T) {
	t.Parallel()
	one, err := os.ReadFile("../inference_emu/emulator/testdata/fixed.onnx")
	if err != nil {
		t.Fatal(err)
	}
	model := filepath.Join(t.TempDir(), "eight.onnx")
	eight := strings.ReplaceAll(string(one), "\n\x02\b\x01\n\x02\b", "\n\x02\b\x08\n\x02\b") // the first dimension of two
	if err := os.WriteFile(model, []byte(eight), 0o600); err != nil {
		t.Fatal(err)
	}
	here := newSite(t)
	want := read[[]deployment.Deployment](t, here.must("edge", "deploy", model, "--device", "raspberry-pi-4", "--json"))[0]
	here.worker("--slots", "1")
	s := newDeployedStudy(t, "fixed", model, "raspberry-pi-4, this-machine")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	answer := read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
	if len(answer.Deployments) != 2 {
		t.Fatalf("%+v", answer.Deployments)
	}
	for _, got := range answer.Deployments {
		if samples := got.SamplesPerSecond * got.LatencySeconds.Value; got.Configuration.BatchSize != 8 || math.Abs(samples-8) > 1e-6 {
			t.Errorf("%s: batches of %d, %v samples in the time of one", got.Device, got.Configuration.BatchSize, samples)
		}
	}
	if got := answer.Deployments[0]; got.SamplesPerSecond != want.SamplesPerSecond || want.Configuration.BatchSize != 8 {
		t.Errorf("the study says %v samples/s, tandem edge deploy %v", got.SamplesPerSecond, want.SamplesPerSecond)
	}
}

// TestABoardMeasuresWhatIsTrained has a board measure the model that trials hand over, and
// killed at it once; started anew it goes on.
func TestABoardMeasuresWhatIsTrained(t *testing.T) {
	t.Parallel()
	library := boardLibrary(t)
	here := newSite(t)
	small, err := launch.BuildForBoards(t.Context(), t.TempDir())
	if err != nil {
		t.Fatal(err)
	}
	token := deviceToken(t, here)
	board := func() *launch.Process {
		agent, err := launch.Start(small, []string{"TANDEM_SERVER=http://" + here.listen}, "edge", "agent", "--token-file", token, "--device", "lab", "--name", "lab", "--onnxruntime", library, "--seconds", "0.3")
		if err != nil {
			t.Fatal(err)
		}
		endsWith(t, agent)
		return agent
	}
	seen := func() []emu.Board { return read[emu.Boards](t, here.must("edge", "boards", "--json")).Boards }
	s := newDeployedStudy(t, "boarded", "../inference_emu/emulator/testdata/cnn.onnx", "board/lab")
	if got := here.cli("study", "create", s.file); got.code == 0 || !strings.Contains(got.stderr, "inference.devices[0]") {
		t.Errorf("a board that nobody heard of: exit code %d\n%s", got.code, got.stderr)
	}
	first := board()
	until(t, "a board", func() bool { return len(seen()) == 1 })
	here.must("study", "create", s.file)
	here.worker("--slots", "1")
	until(t, "an order", func() bool { return seen()[0].Measuring != "" || seen()[0].Measured > 0 })
	first.Kill()
	board()
	here.must("study", "watch", s.name)
	var answer protocol.Recommendation
	until(t, "a measured deployment", func() bool {
		answer = read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
		return len(answer.Deployments) == 1 && !answer.Deployments[0].Estimated()
	})
	until(t, "measured trials", func() bool {
		return !slices.ContainsFunc(here.books(s.name).Trials, func(one trial.Trial) bool {
			return one.Inference == nil || one.Inference.Device != "board/lab" || one.Inference.Estimated()
		})
	})
}

// TestASecondAgentOfABoardIsRefused starts an agent of the same name while the first one
// measures, for longer than a silent one keeps its name: the first goes on.
func TestASecondAgentOfABoardIsRefused(t *testing.T) {
	t.Parallel()
	library := boardLibrary(t)
	here := newSite(t)
	token := deviceToken(t, here)
	board := func(name string) *launch.Process {
		agent, err := launch.Start(binary, []string{"TANDEM_SERVER=http://" + here.listen}, "edge", "agent", "--token-file", token, "--device", "lab", "--name", name, "--onnxruntime", library, "--seconds", "12", "--width", "1e-9")
		if err != nil {
			t.Fatal(err)
		}
		endsWith(t, agent)
		return agent
	}
	seen := func() []emu.Board { return read[emu.Boards](t, here.must("edge", "boards", "--json")).Boards }
	first := board("lab")
	until(t, "a board", func() bool { return len(seen()) == 1 })
	s := newDeployedStudy(t, "named", "../inference_emu/emulator/testdata/cnn.onnx", "board/lab")
	here.must("study", "create", s.file)
	here.worker("--slots", "1")
	until(t, "an order", func() bool { return seen()[0].Measuring != "" })
	second, other := board("lab"), board("lab-2")
	refusal := "another agent asks as board lab already: end it, or start this one with another --name"
	until(t, "a refusal", func() bool { return strings.Contains(second.Output(), refusal) })
	until(t, "two boards, one of which has measured", func() bool {
		list := seen()
		return len(list) == 2 && list[0].Measured > 0
	})
	if first.Ended() || strings.Contains(first.Output()+other.Output(), "refuses this board") || !strings.Contains(first.Output(), "measuring") {
		t.Errorf("the first agent: %s\nthat of another name: %s", first.Output(), other.Output())
	}
	until(t, "the end of the second", second.Ended)
	if said := strings.TrimSpace(second.Output()); !strings.HasSuffix(said, refusal) || strings.Contains(said, "measuring") {
		t.Errorf("it measured, or ends with another word: %s", said)
	}
}

// TestABoardsJoulesAreItsMeters has a board with a meter that says 1000 W, and one without:
// joules name the meter, or are an estimate.
func TestABoardsJoulesAreItsMeters(t *testing.T) {
	t.Parallel()
	library := boardLibrary(t)
	meter := filepath.Join(t.TempDir(), "plug")
	if err := os.WriteFile(meter, []byte("#!/bin/sh\nwhile echo 1000; do sleep 0.1; done\n"), 0o700); err != nil {
		t.Fatal(err)
	}
	here := newSite(t)
	token := deviceToken(t, here)
	for name, more := range map[string][]string{"metered": {"--meter", "command:" + meter}, "plain": nil} {
		agent, err := launch.Start(binary, []string{"TANDEM_SERVER=http://" + here.listen}, append([]string{"edge", "agent", "--token-file", token, "--device", name, "--name", name, "--onnxruntime", library, "--seconds", "0.5"}, more...)...)
		if err != nil {
			t.Fatal(err)
		}
		endsWith(t, agent)
	}
	until(t, "two boards", func() bool { return len(read[emu.Boards](t, here.must("edge", "boards", "--json")).Boards) == 2 })
	s := newDeployedStudy(t, "joules", "../inference_emu/emulator/testdata/cnn.onnx", "board/metered, board/plain")
	here.must("study", "create", s.file)
	here.worker("--slots", "1")
	here.must("study", "watch", s.name)
	until(t, "measured deployments", func() bool {
		answer := read[protocol.Recommendation](t, here.must("study", "recommend", s.name, "--json"))
		if len(answer.Deployments) != 2 || answer.Deployments[0].Estimated() || answer.Deployments[1].Estimated() {
			return false
		}
		metered, plain := answer.Deployments[0], answer.Deployments[1]
		if watts := metered.JoulesPerSample.Value * metered.SamplesPerSecond; metered.EnergyMethod != "meter plug" || watts < 500 || watts > 1500 {
			t.Errorf("%g W by %q at 1000 W", watts, metered.EnergyMethod)
		}
		if !plain.EnergyEstimated() {
			t.Errorf("without a meter the joules are by %q", plain.EnergyMethod)
		}
		return true
	})
}

// TestABrokenModelFailsNoTrial hands over a file that is no model, and one of far too many
// operators: the log says in a line what is wrong.
func TestABrokenModelFailsNoTrial(t *testing.T) {
	t.Parallel()
	here := newSite(t)
	here.worker("--slots", "1")
	all := onnxtest.Hostile()
	hostile := all[slices.IndexFunc(all, func(one onnxtest.File) bool { return one.Name == "200,000 operators" })]
	path := filepath.Join(t.TempDir(), "hostile.onnx")
	if err := os.WriteFile(path, hostile.Content(), 0o600); err != nil {
		t.Fatal(err)
	}
	for name, file := range map[string]string{"broken": "edge_test.go", "hostile": path} {
		s := newDeployedStudy(t, name, file, "raspberry-pi-4")
		here.must("study", "create", s.file)
		here.must("study", "watch", s.name)
		for _, one := range here.books(s.name).Trials {
			if one.Failures > 0 || one.Inference != nil {
				t.Errorf("trial %d: %d failures, %+v", one.Number, one.Failures, one.Inference)
			}
		}
		log := here.must("study", "log", s.name, "0")
		if !strings.Contains(log, "the model could not be used") || name == "hostile" && !strings.Contains(log, "the model could not be used: the file has "+hostile.Says) {
			t.Errorf("%s: the log says\n%s", name, log)
		}
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
	folder := filepath.Join(withPyTorch(t, python), "examples/lenet-fashion-mnist") // a tenth of the images
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

// TestABackendIsChosenByWhatItsAgentMeasured has the agents of two boards measure the model of
// a study for backends: the cheaper one that keeps the bound is chosen, not one that takes too
// few requests, and none before it was measured. A restart forgets nothing.
func TestABackendIsChosenByWhatItsAgentMeasured(t *testing.T) {
	t.Parallel()
	library := boardLibrary(t)
	here := newSite(t)
	token := deviceToken(t, here)
	here.must("backend", "add", "small", "--device", "board/one", "--cores", "1", "--price", "0.1")
	here.must("backend", "add", "large", "--device", "board/two", "--price", "9")
	here.must("backend", "add", "bounded", "--device", "board/two", "--price", "0.01", "--max-rate", "5")
	s := newDeployedStudy(t, "placed", "../inference_emu/emulator/testdata/cnn.onnx", "raspberry-pi-4")
	s.rewrite("high: 4}}", "high: 4}, scenario: {server: {rate: 10/s, p99_ms: 10000}}}")
	here.worker("--slots", "1")
	here.must("study", "create", s.file)
	here.must("study", "watch", s.name)
	choice := func() backend.BackendChoice {
		return read[backend.BackendChoice](t, here.cli("backend", "choose", s.name, "--json").stdout)
	}
	if answer := here.cli("backend", "choose", s.name); answer.code != 1 || !strings.Contains(answer.stdout, "No backend was measured to keep the bounds") {
		t.Errorf("without an agent: exit code %d\n%s%s", answer.code, answer.stdout, answer.stderr)
	}
	for _, name := range []string{"one", "two"} {
		agent, err := launch.Start(binary, []string{"TANDEM_SERVER=http://" + here.listen}, "edge", "agent", "--token-file", token, "--device", name, "--name", name, "--onnxruntime", library, "--seconds", "0.3")
		if err != nil {
			t.Fatal(err)
		}
		t.Cleanup(agent.Kill)
	}
	until(t, "a chosen backend", func() bool { return choice().Chosen == "small" })
	check := func(when string) {
		t.Helper()
		for _, one := range choice().Options {
			switch one.Backend.Name {
			case "small":
				if !one.Measured || one.State != backend.Keeps || one.Deployment.MeasuredAt == nil || one.Deployment.Configuration.Cores != 1 {
					t.Errorf("%s: %+v", when, one)
				}
			case "bounded":
				if one.State != backend.Misses {
					t.Errorf("%s: %+v", when, one)
				}
			}
		}
	}
	check("measured")
	here.server.Kill()
	here.start()
	until(t, "the choice after a restart", func() bool { return choice().Chosen == "small" })
	check("after a restart")
	here.must("backend", "remove", "small")
	until(t, "the other backend", func() bool { return choice().Chosen == "large" })
}

// boardLibrary is the folder of the ONNX Runtime with which a board measures.
func boardLibrary(t *testing.T) string {
	t.Helper()
	found, err := filepath.Glob("../.venv-test/lib/python3*/site-packages/onnxruntime/capi")
	if err != nil {
		t.Fatal(err)
	}
	if len(found) == 0 {
		t.Skip("scripts/test installs ONNX Runtime, with which a board measures")
	}
	return found[0]
}

// deviceToken is a file with a token for boards of the lab.
func deviceToken(t *testing.T, at *site) string {
	t.Helper()
	token := filepath.Join(t.TempDir(), "token")
	if err := os.WriteFile(token, []byte(at.must("token", "create", "--scope", "device", "--name", "lab")), 0o600); err != nil {
		t.Fatal(err)
	}
	return token
}
