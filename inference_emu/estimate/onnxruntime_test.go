package estimate_test

import (
	"encoding/json"
	"math"
	"math/rand/v2"
	"os"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// heldOut are runs of ONNX Runtime with eight networks from which nothing was
// learned (bench/edgetune/here keeps such files).
func heldOut(t *testing.T) (estimate.Device, []estimate.Measurement) {
	t.Helper()
	content, err := os.ReadFile("testdata/onnxruntime.json")
	if err != nil {
		t.Fatal(err)
	}
	var kept struct {
		Device    estimate.Device
		Workloads map[string]estimate.Workload
		Runs      []struct {
			Model          string
			Batch, Threads int
			Seconds        float64
		}
	}
	if err := json.Unmarshal(content, &kept); err != nil {
		t.Fatal(err)
	}
	var all []estimate.Measurement
	for _, one := range kept.Runs {
		workload, known := kept.Workloads[one.Model]
		if !known {
			t.Fatalf("the file says nothing of what %s computes", one.Model)
		}
		all = append(all, estimate.Measurement{Workload: workload, Seconds: one.Seconds,
			Configuration: estimate.Configuration{Batch: one.Batch, Cores: one.Threads}})
	}
	if len(all) < 50 {
		t.Fatalf("only %d runs are in the file", len(all))
	}
	return kept.Device, all
}

// What the program brings along knows ONNX Runtime: networks that it never saw
// are estimated without a measurement, and a few measurements make that better.
func TestONNXRuntimeIsKnown(t *testing.T) {
	device, all := heldOut(t)
	knowledge := known(t)
	for _, test := range []struct {
		points int
		most   float64
	}{{0, 0.5}, {10, 0.3}, {20, 0.25}} {
		var errors []float64
		random := rand.New(rand.NewPCG(1, 2))
		for range 3 {
			order := random.Perm(len(all))
			var calibration []estimate.Measurement
			for _, i := range order[:test.points] {
				calibration = append(calibration, all[i])
			}
			model := estimate.Fit(device, calibration, knowledge)
			for _, i := range order[test.points:] {
				errors = append(errors, math.Abs(model.Predict(all[i].Workload, all[i].Configuration).Seconds.Value/all[i].Seconds-1))
			}
		}
		slices.Sort(errors)
		median := errors[len(errors)/2]
		t.Logf("%d calibration runs: median error %.1f %%, 90th percentile %.1f %%", test.points, 100*median, 100*errors[len(errors)*9/10])
		if median > test.most {
			t.Errorf("%d calibration runs: median error %.0f %%, more than %.0f %%", test.points, 100*median, 100*test.most)
		}
	}
}
