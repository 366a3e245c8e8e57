package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/edge/deployment"
	"github.com/tandem-tune/tandem/edge/emulator"
)

const lenetModel = "../../edge/onnx/testdata/lenet5.onnx"

// said runs a command of "tandem edge" and returns what it printed.
func said(t *testing.T, args ...string) (string, error) {
	t.Helper()
	command := edgeCommand()
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
	if err != nil || program != found[0].Code || !strings.Contains(program, "options.intra_op_num_threads = 4") || !strings.Contains(program, "range(0, len(samples), 8)") {
		t.Errorf("%v, %s", err, program)
	}
}

func TestDeployNamesWhatIsWrong(t *testing.T) {
	for want, args := range map[string][]string{
		"or raspberry-pi-4?":                 {"deploy", lenetModel, "--device", "raspberry-pi-5"},
		"latency, throughput or energy":      {"deploy", lenetModel, "--objective", "speed"},
		"batches are from 1 to 100":          {"deploy", lenetModel, "--batch-high", "101"},
		"is for one device":                  {"deploy", lenetModel, "--program"},
		"must be a metric":                   {"deploy", lenetModel, "--constraint", "fast"},
		"no such file":                       {"deploy", lenetModel, "--calibration", "missing.json"},
		"is no pair of a model and its runs": {"calibrate", "raspberry-pi-4", lenetModel},
		"name a device, and models":          {"calibrate", "raspberry-pi-4"},
	} {
		if _, err := said(t, args...); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v: %v, want %q", args, err, want)
		}
	}
}

// Measurements of two models, three times as slow as estimated, calibrate.
func TestADeviceIsCalibrated(t *testing.T) {
	folder := t.TempDir()
	args := []string{"calibrate", "raspberry-pi-4"}
	for _, name := range []string{"lenet5", "resnet", "mobilenet"} {
		model := filepath.Join("../../edge/onnx/testdata", name+".onnx")
		ran := edgeRun{Model: model}
		for _, threads := range []string{"1", "4"} {
			seconds := 3 * estimated(t, model)
			if threads == "4" {
				seconds *= 0.6
			}
			m := emulator.Measurement{Cell: emulator.Cell{Batch: 1, Threads: map[string]int{"1": 1, "4": 4}[threads]}, Runs: 10,
				Latency: emulator.Latency{P50: seconds, P90: seconds, P99: seconds, MedianLow: seconds, MedianHigh: seconds}}
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
		args = append(args, model+"="+path)
	}
	output := filepath.Join(folder, "pi.json")
	text, err := said(t, append(args, "--output", output, "--json")...)
	var told calibrated
	if err != nil || json.Unmarshal([]byte(text), &told) != nil {
		t.Fatalf("%v, %s", err, text)
	}
	if told.Measurements != 6 || told.After == nil || told.After.Median >= told.Before.Median {
		t.Errorf("%+v", told)
	}
	table, err := said(t, "deploy", lenetModel, "--device", "raspberry-pi-4", "--calibration", output)
	if err != nil || !strings.Contains(table, "measured") {
		t.Errorf("%v, %s", err, table)
	}
	if text, err = said(t, args...); err != nil || !strings.Contains(text, "with those of the other models") {
		t.Errorf("%v, %s", err, text)
	}
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
