package main

import (
	"bytes"
	"compress/gzip"
	"fmt"
	"math"
	"os"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/runs"
	"github.com/tandem-tune/tandem/bench/edgetune/zoo"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/graph"
)

func TestNamesOfModelsMeanGraphs(t *testing.T) {
	for name, want := range map[string]string{
		"mobilenet-v1-0.25-128-quantized":               "mobilenet-v1-0.25-128 int8",
		"mobilenet-v1-precision_float-1.0-224":          "mobilenet-v1-1-224 float32",
		"mobilenet-v2-1.4-224-non-quantized":            "mobilenet-v2-1.4-224 float32",
		"mobilenet-v2-precision_uint8-0.35-96":          "mobilenet-v2-0.35-96 int8",
		"mobilenet-v3-large-minimalistic_224_1.0_uint8": "mobilenet-v3-large-1-224-minimalistic-true int8",
		"mobilenet-v3-precision_float-small-224":        "mobilenet-v3-small-1-224-minimalistic-false float32",
		"mobilenet-v3-large_224_0.75_float":             "mobilenet-v3-large-0.75-224-minimalistic-false float32",
		"efficientnet-lite3-quantized":                  "efficientnet-lite3 int8",
		"efficientnet-fp32-lite4":                       "efficientnet-lite4 float32",
		"bert-99":                                       "",
		"efficientnet-lite9-quantized":                  "",
	} {
		g, known := model(name)
		got := ""
		if known {
			got = g.Name + " " + string(g.Operators[0].Type)
			if err := g.Check(); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if got != want {
			t.Errorf("%s: %q, not %q", name, got, want)
		}
	}
}

func TestDevicesAreFoundByName(t *testing.T) {
	for text, want := range map[string]string{
		"Raspberry Pi 4 Model B Rev 1.4 (rpi4) rpi4-tflite-v2.7.1-ruy": "Raspberry Pi 4",
		"titanxp_32": "Titan Xp", "titanx_32": "Titan X",
		"AWS cloud instance c5a.xlarge": "AWS c5a", "AWS cloud instance c5.xlarge": "AWS c5",
		"something else": "something else",
	} {
		if got := lookup(text).Name; got != want {
			t.Errorf("%s: %s, not %s", text, got, want)
		}
	}
	if lookup("vim4-armnn-v22.05-opencl").Accelerator == nil || lookup("vim4-armnn-v22.05-neon").Accelerator != nil {
		t.Error("OpenCL runs on the graphics processor and Neon on the cores")
	}
}

func TestRanks(t *testing.T) {
	if r := spearman([]float64{1, 2, 3, 4}, []float64{10, 20, 30, 5}); math.Abs(r+0.2) > 1e-12 {
		t.Errorf("%g, not -0.2", r)
	}
	if r := spearman([]float64{1, 2, 2, 3}, []float64{1, 2, 2, 9}); math.Abs(r-1) > 1e-12 {
		t.Errorf("%g with ties, not 1", r)
	}
	if q := quantile([]float64{4, 1, 3, 2}, 0.5); q != 2.5 {
		t.Errorf("median %g, not 2.5", q)
	}
}

// The errors that are reported are of measurements that were not shown.
func TestCalibrationIsNotEvaluated(t *testing.T) {
	s := &series{parameters: map[string]float64{}}
	g, _ := model("mobilenet-v1-0.25-128-quantized")
	for i := range 50 {
		s.measured(g, estimate.Configuration{Batch: i + 1}, float64(i+1), 0)
	}
	remember := func(shown []estimate.Measurement) func(estimate.Measurement) estimate.Prediction {
		return func(m estimate.Measurement) estimate.Prediction {
			for _, one := range shown {
				if one.Configuration == m.Configuration {
					return estimate.Prediction{Seconds: estimate.Estimate{Value: m.Seconds, Low: m.Seconds, High: m.Seconds}}
				}
			}
			return estimate.Prediction{Seconds: estimate.Estimate{Value: 2 * m.Seconds}}
		}
	}
	a := evaluate(s, 20, seconds(), remember)
	if a.median != 100 || a.high != 100 || a.coverage != 0 {
		t.Errorf("%+v: remembering helped", a)
	}
}

// A small table with a device nobody knows goes all the way to the report.
func TestReportOfATable(t *testing.T) {
	folder := t.TempDir()
	if err := os.MkdirAll(filepath.Join(folder, "mlperf_edge"), 0o755); err != nil {
		t.Fatal(err)
	}
	var text strings.Builder
	text.WriteString("version,device,platform,task,model,scenario,result,power_result\n")
	for _, width := range []string{"0.25", "0.5", "0.75", "1.0"} {
		for _, resolution := range []string{"128", "160", "192", "224"} {
			for _, version := range []string{"v1", "v2"} {
				for _, sort := range []string{"quantized", "non-quantized"} {
					name := "mobilenet-" + version + "-" + width + "-" + resolution + "-" + sort
					g, _ := model(name)
					ms := 1.0
					for _, o := range g.Operators {
						rate := 2e7
						if o.Type == graph.Int8 {
							rate = 5e7
						}
						ms += float64(o.Operations)/rate + 0.01
					}
					text.WriteString("v9,New Board,newboard-engine,resnet," + name + ",SingleStream," + ftoa(ms) + "," + ftoa(4*ms) + "\n")
				}
			}
		}
	}
	file, err := os.Create(filepath.Join(folder, "mlperf_edge", "mlperf_inference_edge.csv.gz"))
	if err != nil {
		t.Fatal(err)
	}
	zip := gzip.NewWriter(file)
	if _, err := zip.Write([]byte(text.String())); err != nil {
		t.Fatal(err)
	}
	if err := zip.Close(); err != nil {
		t.Fatal(err)
	}
	t.Setenv("TANDEM_DATA", folder)
	var out bytes.Buffer
	if err := run([]string{"accuracy"}, &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"mlperf, latency", "mlperf, energy", "| new board newboard-engine | v9 newboard-engine | A | 64 |", "goal met by 1"} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, out.String())
		}
	}
	t.Setenv("TANDEM_DATA", t.TempDir())
	out.Reset()
	if err := run([]string{"accuracy"}, &out); err != nil || !strings.Contains(out.String(), "nothing to do") {
		t.Errorf("without data: %v, %q", err, out.String())
	}
	if err := run([]string{"guess"}, &out); err != nil && !strings.Contains(err.Error(), "accuracy") {
		t.Error(err)
	}
}

func ftoa(x float64) string { return strconv.FormatFloat(x, 'g', -1, 64) }

// What is learned from are networks of the zoo, as they are today, and none of
// those that the estimates of ONNX Runtime are tested with.
func TestOwnRunsAreOfTheZooAndOfNoneHeldOut(t *testing.T) {
	own, err := runs.Parse(ownRuns)
	if err != nil {
		t.Fatal(err)
	}
	held, err := runs.Read("../../inference_emu/estimate/testdata/onnxruntime.json")
	if err != nil {
		t.Fatal(err)
	}
	all, err := zoo.Runnable()
	if err != nil {
		t.Fatal(err)
	}
	want := map[estimate.Workload]bool{}
	for _, g := range all {
		workload := estimate.Summarize(g)
		workload.Name = ""
		want[workload] = true
	}
	for name, workload := range own.Workloads {
		workload.Name = ""
		if !want[workload] {
			t.Errorf("%s is no network of the zoo, or does other work now: measure again (bench/edgetune/here)", name)
		}
		if _, known := held.Workloads[name]; known {
			t.Errorf("%s is learned from and tested with", name)
		}
		delete(want, workload)
	}
	if len(want) > 0 || len(own.Runs) < 100 {
		t.Errorf("%d networks were not run, there are %d runs", len(want), len(own.Runs))
	}
	known, err := estimate.Known()
	if err != nil {
		t.Fatal(err)
	}
	last := known.Time[len(known.Time)-1]
	if last.Name != ownEngine || !slices.Contains(known.Devices, own.Device.Name) {
		t.Errorf("the program does not bring along what was learned from them: the last engine is %q, the devices are %v", last.Name, known.Devices)
	}
}

// What is learned of our networks makes each of them better known that was left out.
func TestOwnRunsHelp(t *testing.T) {
	var out bytes.Buffer
	if err := reportOwn(&out); err != nil {
		t.Fatal(err)
	}
	var before, beforeHigh, after, afterHigh float64
	for line := range strings.SplitSeq(out.String(), "\n") {
		if strings.HasPrefix(line, "| all |") {
			if _, err := fmt.Sscanf(line, "| all | %f / %f | %f / %f |", &before, &beforeHigh, &after, &afterHigh); err != nil {
				t.Fatalf("%q: %v", line, err)
			}
		}
	}
	if !(after > 0 && after < before/3) {
		t.Errorf("median error %.0f %% becomes %.0f %%\n%s", before, after, out.String())
	}
}
