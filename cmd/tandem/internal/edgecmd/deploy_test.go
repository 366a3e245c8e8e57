package edgecmd

import (
	"encoding/json"
	"errors"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
)

const (
	lenetModel     = "../../../../inference_emu/onnx/testdata/lenet5.onnx"
	recurrentModel = "../../../../inference_emu/onnx/testdata/lstm.onnx"
	fixedModel     = "../../../../inference_emu/emulator/testdata/fixed.onnx"
	wordsModel     = "../../../../inference_emu/emulator/testdata/words.onnx"
)

// said runs a command of "tandem edge" and returns what it printed.
func said(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := Command()
	var out strings.Builder
	command.SetOut(&out)
	command.SetErr(&out)
	command.SetArgs(args)
	command.SilenceUsage, command.SilenceErrors = true, true
	err := command.ExecuteContext(t.Context())
	return out.String(), err
}

func TestAModelIsDeployedOnEveryDevice(t *testing.T) {
	text, err := said(t, "deploy", lenetModel)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"raspberry-pi-4", "jetson-nano", "estimate: from what the device is made of", "Bands of estimates"} {
		if !strings.Contains(text, want) {
			t.Errorf("%q is not in\n%s", want, text)
		}
	}
	text, err = said(t, "deploy", lenetModel, "--device", "raspberry-pi-4", "--batch-high", "8", "--objective", "throughput", "--json")
	var found []deployment.Deployment
	if err != nil || json.Unmarshal([]byte(text), &found) != nil || len(found) != 1 || found[0].Configuration.BatchSize != 8 {
		t.Errorf("%v, %s", err, text)
	}
	program, err := said(t, "deploy", lenetModel, "--device", "raspberry-pi-4", "--batch-high", "8", "--objective", "throughput", "--program")
	if err != nil || program != found[0].Code || !strings.Contains(program, "options.intra_op_num_threads = 4") || !strings.Contains(program, "\nbatch = 8\n") {
		t.Errorf("%v, %s", err, program)
	}
}

// If one device keeps to the constraints, that is an answer; if none does, it is printed
// and an error.
func TestConstraintsThatNothingKeepsToAreAnError(t *testing.T) {
	for constraint, want := range map[string]bool{"latency_ms <= 0.0001": true, "latency_ms <= 100000": false} {
		for _, format := range []string{"--json=true", "--json=false", "--program"} {
			text, err := said(t, "deploy", lenetModel, "--device", "raspberry-pi-4", "--constraint", constraint, format)
			if (err != nil) != want || !strings.Contains(text, "raspberry-pi-4") {
				t.Errorf("%s %s: %v, %s", constraint, format, err, text)
			}
		}
	}
}

// One device that is too small keeps nobody from the answers of the others.
func TestADeviceThatIsTooSmallIsOneLine(t *testing.T) {
	content, err := os.ReadFile("../../../../inference_emu/device/testdata/my-board.yaml")
	if err != nil {
		t.Fatal(err)
	}
	board := filepath.Join(t.TempDir(), "board.yaml")
	small := strings.Replace(string(content), "value: 2147483648", "value: 1048576", 1)
	if err := os.WriteFile(board, []byte(small), 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"deploy", lenetModel, "--device-file", board, "--batch-low", "100", "--batch-high", "100"}
	text, err := said(t, args...)
	for _, want := range []string{"it does not run there\n", "  my-board: no configuration can run the model: a batch of 100 needs", "more than the 1 MiB that the device has", "raspberry-pi-4"} {
		if err != nil || !strings.Contains(text, want) {
			t.Errorf("%v, no %q in\n%s", err, want, text)
		}
	}
	if _, err := said(t, append(args, "--device", "my-board", "--program")...); err == nil || !strings.Contains(err.Error(), "there is no program: my-board: no configuration") {
		t.Errorf("a program for a device that is too small: %v", err)
	}
}

// withPython is a Python that has ONNX Runtime, as scripts/test installs it, or skips.
func withPython(t *testing.T) string {
	t.Helper()
	python, err := filepath.Abs("../../../../.venv-test/bin/python")
	if err != nil {
		t.Fatal(err)
	}
	if err := exec.CommandContext(t.Context(), python, "-c", "import onnxruntime").Run(); err != nil {
		t.Skip("there is no Python with ONNX Runtime: " + err.Error())
	}
	return python
}

// The program runs as it was printed: with the model's path, for several inputs, and
// with a batch that the file fixes.
func TestTheProgramOfADeploymentRuns(t *testing.T) {
	python := withPython(t)
	for name, test := range map[string]struct {
		model string
		batch string
		want  string
		said  string
	}{
		"open batch":    {lenetModel, "4", "a batch of 4 takes ", "; a batch of 4 on raspberry-pi-4: "},
		"a fixed batch": {fixedModel, "1", "a batch of 1 takes ", "; a batch of 1 on raspberry-pi-4: "},
	} {
		t.Run(name, func(t *testing.T) {
			program, err := said(t, "deploy", test.model, "--device", "raspberry-pi-4", "--batch-low", test.batch, "--program")
			if err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "infer.py")
			if err := os.WriteFile(path, []byte(program), 0o600); err != nil {
				t.Fatal(err)
			}
			out, err := exec.CommandContext(t.Context(), python, path, test.model).CombinedOutput()
			if !strings.Contains(string(out), test.want) || !strings.Contains(string(out), test.said) {
				t.Errorf("%v, %s\n%s", err, out, program)
			}
			out, err = exec.CommandContext(t.Context(), python, path, "--help").CombinedOutput()
			if err == nil || string(out) != "--help is no file: python3 infer.py model.onnx\n" {
				t.Errorf("of no file: %v, %s", err, out)
			}
		})
	}
}

// The program measures with the sizes that --dimension gave.
func TestTheProgramMeasuresAtTheGivenSizes(t *testing.T) {
	for _, steps := range []string{"3", "128"} {
		program, err := said(t, "deploy", recurrentModel, "--dimension", "steps="+steps, "--device", "raspberry-pi-4", "--program")
		if want := "    sizes = [[1, " + steps + "]]"; err != nil || !strings.Contains(program, want) {
			t.Errorf("%v, no %q in\n%s", err, want, program)
		}
		python := withPython(t)
		path := filepath.Join(t.TempDir(), "infer.py")
		if err := os.WriteFile(path, []byte(strings.Replace(program, "    seconds = []", "    print([sample.shape for sample in samples])\n    seconds = []", 1)), 0o600); err != nil {
			t.Fatal(err)
		}
		if out, err := exec.CommandContext(t.Context(), python, path, recurrentModel).CombinedOutput(); err != nil || !strings.Contains(string(out), "[(1, "+steps+")]") {
			t.Errorf("%v, %s", err, out)
		}
	}
}

// Requests of several samples are put together in batches, which the answer names.
func TestDeployForRequestsOfSeveralSamples(t *testing.T) {
	out, err := said(t, "deploy", lenetModel, "--device", "raspberry-pi-4", "--batch-high", "32", "--streams", "8", "--json")
	var found []deployment.Deployment
	if err == nil {
		err = json.Unmarshal([]byte(out), &found)
	}
	if err != nil || len(found) != 1 || found[0].Batching == nil || found[0].Batching.Streams != 8 || found[0].Configuration.BatchSize != found[0].Batching.MaxBatch {
		t.Errorf("%v %s", err, out)
	}
}

func TestDeployNamesWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"give 1 to 1000 samples without":      {"deploy", lenetModel, "--streams", "8", "--rate", "1/s"},
		"a load is both, such as":             {"deploy", lenetModel, "--rate", "fast", "--p99", "50ms"},
		"or raspberry-pi-4?":                  {"deploy", lenetModel, "--device", "raspberry-pi-5"},
		"latency, throughput or energy":       {"deploy", lenetModel, "--objective", "speed"},
		"batches are from 1 to 100":           {"deploy", lenetModel, "--batch-high", "101"},
		"are for one device":                  {"deploy", lenetModel, "--program"},
		"name it with --device":               {"deploy", lenetModel, "--measured", lenetModel + "=missing.json"},
		"must be a metric":                    {"deploy", lenetModel, "--constraint", "fast"},
		"the smallest batch is larger":        {"deploy", lenetModel, "--batch-low", "8", "--batch-high", "4"},
		"no such file":                        {"deploy", lenetModel, "--device", "raspberry-pi-4", "--measured", lenetModel + "=missing.json"},
		"takes 1 at a time":                   {"deploy", fixedModel, "--batch-low", "4", "--batch-high", "8"},
		"--device-file describes others":      {"deploy", lenetModel, "--device", "toaster"},
		"with --dimension height=33,width=32": {"deploy", "../../../../inference_emu/onnx/testdata/segmenter.onnx", "--dimension", "height=33,width=32"},
		"is no pair of a model and its runs":  {"deploy", lenetModel, "--device", "raspberry-pi-4", "--measured", lenetModel},
	} {
		if _, err := said(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// Measurements of other models, three times as slow as estimated, make the estimate of one
// slower; and what was measured of the model itself goes before every estimate.
func TestEstimatesStandOnWhatWasMeasured(t *testing.T) {
	folder := t.TempDir()
	asked := []string{"deploy", lenetModel, "--device", "raspberry-pi-4"}
	measured := slower(t, folder, 3, 3, 3)
	own, others := measured[:2], measured[2:]
	before := estimated(t, lenetModel)
	text, err := said(t, slices.Concat(asked, others, []string{"--json"})...)
	var found []deployment.Deployment
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		t.Fatalf("%v, %s", err, text)
	}
	if after := found[0]; after.LatencySeconds.Value < 2*before || !strings.Contains(after.Method, "and 4 measurements on it") {
		t.Errorf("%.3g s before, %.3g s after (%s)", before, after.LatencySeconds.Value, after.Method)
	}
	// The same model twice is one model.
	table, err := said(t, slices.Concat(asked, own, own, others)...)
	if err != nil || !regexp.MustCompile(`(?m)^raspberry-pi-4 .* measured$`).MatchString(table) || !strings.Contains(table, "the joules are not measured: estimate: the latency times 2.7 to 5.2 W") || !strings.Contains(table, "raspberry-pi-4: measured on "+time.Now().Format("2006-")) {
		t.Errorf("%v, %s", err, table)
	}
	// Runs of another file are refused.
	text, err = said(t, "deploy", wordsModel, "--device", "raspberry-pi-4", "--measured", longer(t, folder), "--dimension", "length=128")
	if err == nil || !strings.Contains(err.Error(), "tokens ran as [2 5] in a batch of 2, and is [1 128] for a sample here: give both commands the same --dimension") {
		t.Errorf("runs of another length: %v, %s", err, text)
	}
	swapped := smallModel + "=" + strings.SplitN(own[1], "=", 2)[1]
	if _, err = said(t, slices.Concat(asked, []string{"--measured", swapped})...); err == nil || !strings.Contains(err.Error(), "name the model that ran") {
		t.Errorf("runs of another model: %v", err)
	}
}

// What another execution provider took counts for the model that it ran, beside what cpu
// took: of another model it is said that nothing follows. Without such runs, there is one.
func TestRunsByAnotherProviderCount(t *testing.T) {
	folder := t.TempDir()
	measured := slower(t, folder, 1, 1, 1)
	own := measured[:2]
	for _, test := range []struct {
		name, file string
		factor     float64
		given      []string
		want, says string
	}{
		{"none", "", 0, measured, "", ""},
		{"of another model", "resnet", 0.5, measured[2:], emu.CPU, "raspberry-pi-4: openvino, not recommended: it was not measured here, and estimates do not rank execution providers"},
		{"slower", "lenet5", 3, own, emu.CPU, "its latency is 0.333 times as good as that of cpu"},
		{"faster", "lenet5", 0.5, own, emu.OpenVINO, "its latency is 2 times as good as that of cpu"},
	} {
		if test.file != "" {
			by(t, filepath.Join(folder, test.file+".json"), test.factor)
		}
		asked := append([]string{"deploy", lenetModel, "--device", "raspberry-pi-4"}, test.given...)
		var found []deployment.Deployment
		text, err := said(t, append(asked, "--json")...)
		table, err2 := said(t, asked...)
		program, err3 := said(t, append(asked, "--program")...)
		if err := errors.Join(err, err2, err3, json.Unmarshal([]byte(text), &found)); err != nil {
			t.Fatal(err)
		}
		if got := found[0].Configuration.Provider; got != test.want || !strings.Contains(table, test.says) || strings.Contains(table, "openvino") != (test.want != "") {
			t.Errorf("%s: it is %q\n%s", test.name, got, table)
		}
		if strings.Contains(program, "OpenVINOExecutionProvider") != (test.want == emu.OpenVINO) {
			t.Errorf("%s: the program is\n%s", test.name, program)
		}
	}
}

// by adds to the file what OpenVINO took: so many times as long as the CPU.
func by(t *testing.T, path string, factor float64) {
	t.Helper()
	content, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	var ran edgeRun
	if err := json.Unmarshal(content, &ran); err != nil {
		t.Fatal(err)
	}
	ran.Cells = slices.DeleteFunc(ran.Cells, func(m emulator.Measurement) bool { return m.Provider != "" })
	for _, m := range ran.Cells[:len(ran.Cells):len(ran.Cells)] {
		m.Provider = emu.OpenVINO
		for _, seconds := range []*float64{&m.Latency.P50, &m.Latency.P90, &m.Latency.P99, &m.Latency.MedianLow, &m.Latency.MedianHigh} {
			*seconds *= factor
		}
		ran.Cells = append(ran.Cells, m)
	}
	if content, err = json.Marshal(ran); err != nil {
		t.Fatal(err)
	}
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
}

// Measurements that contradict each other make estimates of others worse: they are left out.
func TestMeasurementsThatMakeItWorseAreLeftOut(t *testing.T) {
	asked := []string{"deploy", smallModel, "--device", "raspberry-pi-4"}
	text, err := said(t, append(asked, slower(t, t.TempDir(), 30, 1, 1)...)...)
	if err != nil || !strings.Contains(text, "not from 6 measurements on it, which make estimates of other models worse") {
		t.Errorf("%v, %s", err, text)
	}
}

// slower are the arguments that say what three models took: so many times as long as is
// estimated.
func slower(t *testing.T, folder string, times ...float64) []string {
	t.Helper()
	var args []string
	for i, name := range []string{"lenet5", "resnet", "mobilenet"} {
		model := filepath.Join("../../../../inference_emu/onnx/testdata", name+".onnx")
		info, err := os.Stat(model)
		if err != nil {
			t.Fatal(err)
		}
		ran := edgeRun{Model: model, Result: emulator.Result{ModelBytes: info.Size()}}
		for _, threads := range []string{"1", "4"} {
			seconds := times[i] * estimated(t, model)
			if threads == "4" {
				seconds *= 0.6
			}
			m := emulator.Measurement{Cell: emulator.Cell{Batch: 1, Threads: map[string]int{"1": 1, "4": 4}[threads]}, Runs: 10,
				JoulesPerSample: 30, EnergyMethod: "estimate: 10 W per busy core, 1 W per core at rest", Latency: emulator.Latency{P50: seconds, P90: seconds, P99: seconds, MedianLow: seconds, MedianHigh: seconds}}
			ran.Cells = append(ran.Cells, m)
		}
		content, err := json.Marshal(ran)
		if err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, name+".json")
		if err := os.WriteFile(path, content, 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--measured", model+"="+path)
	}
	return args
}

// Runs on another processor say nothing of the device.
func TestRunsOnAnotherProcessorAreRefused(t *testing.T) {
	ran := edgeRun{Result: emulator.Result{
		Environment: emulator.Environment{CPUModel: "Intel(R) Xeon(R) Processor @ 2.10GHz"},
		Cells:       []emulator.Measurement{{Cell: emulator.Cell{Batch: 1, Threads: 1}, Runs: 10, Latency: emulator.Latency{P50: 1, P90: 1, P99: 1, MedianLow: 1, MedianHigh: 1}}},
	}}
	content, err := json.Marshal(ran)
	if err != nil {
		t.Fatal(err)
	}
	runs := filepath.Join(t.TempDir(), "run.json")
	if err := os.WriteFile(runs, content, 0o600); err != nil {
		t.Fatal(err)
	}
	args := []string{"deploy", lenetModel, "--measured", lenetModel + "=" + runs, "--device", "raspberry-pi-4"}
	want := runs + `: environment.cpu_model is "Intel(R) Xeon(R) Processor @ 2.10GHz", and the processor of raspberry-pi-4 is "Broadcom BCM2711": run "tandem edge run" on the device itself, or name the device that ran`
	if text, err := said(t, args...); err == nil || err.Error() != want {
		t.Errorf("%v, %s", err, text)
	}
	args[len(args)-1] = "x86-server"
	if text, err := said(t, args...); err != nil || !strings.Contains(text, "and 1 measurement on it") {
		t.Errorf("of an Intel Xeon on one: %v, %s", err, text)
	}
}

// longer is a model that leaves a length open, with runs of the length 5.
func longer(t *testing.T, folder string) string {
	t.Helper()
	ran := edgeRun{Result: emulator.Result{Cells: []emulator.Measurement{{Cell: emulator.Cell{Batch: 2, Threads: 1}, Inputs: []emulator.Input{{Name: "tokens", Type: "int64", Shape: []int64{2, 5}}}}}}}
	content, err := json.Marshal(ran)
	if err != nil {
		t.Fatal(err)
	}
	path := filepath.Join(folder, "words.json")
	if err := os.WriteFile(path, content, 0o600); err != nil {
		t.Fatal(err)
	}
	return wordsModel + "=" + path
}

// estimated is the latency on one core of a Raspberry Pi 4, in seconds.
func estimated(t *testing.T, model string) float64 {
	t.Helper()
	text, err := said(t, "deploy", model, "--device", "raspberry-pi-4", "--json", "--dimension", "N=1")
	var found []deployment.Deployment
	if err != nil || json.Unmarshal([]byte(text), &found) != nil {
		t.Fatalf("%v, %s", err, text)
	}
	return found[0].LatencySeconds.Value
}
