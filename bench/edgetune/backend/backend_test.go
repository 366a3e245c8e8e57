package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/dopeml"
)

// made is a task of two runtimes: one is faster for quantized models, the other
// always needs less energy.
func made(t *testing.T) *task {
	t.Helper()
	var results []result
	for _, width := range []float64{0.25, 0.5, 0.75, 1} {
		for _, resolution := range []float64{128, 160, 192, 224} {
			for _, quantized := range []bool{false, true} {
				one := result{version: "v1", model: fmt.Sprintf("mobilenet-v1-%v-%v-%v", width, resolution, quantized), family: "mobilenet_v1",
					width: width, resolution: resolution, quantized: quantized, accuracy: 0.6}
				seconds := width * resolution / 2e4
				one.platform, one.seconds, one.joules = "one", seconds, 2*seconds
				results = append(results, one)
				one.platform, one.seconds, one.joules = "other", 2*seconds, seconds
				if quantized {
					one.seconds = seconds / 2
				}
				results = append(results, one)
			}
		}
	}
	made, err := newTask(spec{name: "made", platforms: []string{"v1/one", "v1/other"}}, results)
	if err != nil {
		t.Fatal(err)
	}
	return made
}

func TestTheBestInHindsightHasNoRegret(t *testing.T) {
	made := made(t)
	best := method{name: "best", fixed: func(_ *task, requests []request, at int, _ *rand.Rand) int { return requests[at].best }}
	worst := method{name: "worst", fixed: func(_ *task, requests []request, at int, _ *rand.Rand) int { return 1 - requests[at].best }}
	for seed := range uint64(5) {
		good, err := best.play(made, seed)
		if err != nil || good.regret != [3]float64{} || math.Abs(good.right-1) > 1e-9 || good.broken != 0 {
			t.Errorf("the best: %+v, %v", good, err)
		}
		bad, err := worst.play(made, seed)
		if err != nil || bad.right != 0 || !(bad.regret[2] > 0.1) || bad.broken == 0 {
			t.Errorf("the worst: %+v, %v", bad, err)
		}
	}
}

func TestLearningBeatsOneBackendForAll(t *testing.T) {
	made := made(t)
	one, err := method{fixed: bestFixed}.play(made, 1)
	if err != nil {
		t.Fatal(err)
	}
	learned, err := method{settings: &dopeml.Settings{Exploration: dopeml.Optimism, Share: 0.1}}.play(made, 1)
	if err != nil {
		t.Fatal(err)
	}
	if !(learned.regret[2] < one.regret[2]) || !(learned.late[0] < learned.early[0]) || !(learned.late[0] < 0.3) {
		t.Errorf("learned %+v, one backend %+v", learned, one)
	}
}

func TestHeldOutModelsAreInNoRequest(t *testing.T) {
	made := made(t)
	requests, heldOut := made.stream(3)
	if len(heldOut) != 8 || len(requests) != 2*24 {
		t.Fatalf("%d held out, %d requests", len(heldOut), len(requests))
	}
	for _, r := range requests {
		for _, model := range heldOut {
			if r.model == model {
				t.Fatalf("model %d is in a request", model)
			}
		}
		if !r.keeps[r.best] {
			t.Fatal("the best breaks a limit")
		}
	}
}

func TestFeaturesAreThePublishedOnes(t *testing.T) {
	for _, one := range []struct {
		result                  result
		operations, weightBytes float64
	}{
		{result{model: "mobilenet-v1-1.0-224-non-quantized", family: "mobilenet_v1", width: 1, resolution: 224}, 1138e6, 4 * 4.24e6},
		{result{model: "mobilenet-v2-0.35-96-quantized", family: "mobilenet_v2", width: 0.35, resolution: 96, quantized: true}, 2 * 59e6 * 96 * 96 / 224 / 224, 1.66e6},
		{result{model: "mobilenet-v3-small-minimalistic_224_1.0_float", family: "mobilenet_v3"}, 130e6, 8e6},
		{result{model: "efficientnet-lite4-quantized", family: "efficientnet", width: 0, resolution: 4, quantized: true}, 5280e6, 13e6},
	} {
		model, err := features(one.result)
		if err != nil || math.Abs(model.Operations-one.operations) > 1 || model.WeightBytes != one.weightBytes {
			t.Errorf("%s: %+v, %v", one.result.model, model, err)
		}
	}
	if _, err := features(result{model: "gpt", family: "transformer"}); err == nil {
		t.Error("features of an unknown architecture were made up")
	}
}
