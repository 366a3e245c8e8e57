package deployment_test

import (
	"slices"
	"strings"
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
)

// by is the variant with a run by the provider beside that on the CPU.
func by(v deployment.Variant, seconds float64) deployment.Variant {
	run := v.Architecture.Runs[0]
	run.Provider, run.Seconds, run.Low, run.High = emu.OpenVINO, seconds, seconds/1.01, seconds*1.01
	v.Architecture = v.Architecture.With([]emu.Run{run})
	return v
}

// Precisions are compared by each provider that the device can use, and what was measured by
// one says nothing of another: not of estimates, either.
func TestPrecisionsAreComparedByEachProvider(t *testing.T) {
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Providers: []string{emu.OpenVINO}}
	settings := fastest
	settings.Providers = emu.Providers()
	fp32, int8 := took(t, "fp32", 32, 2e-3, 1.01, 0.9), took(t, "int8", 16, 1.5e-3, 1.01, 0.9)
	for name, one := range map[string]struct {
		variants  []deployment.Variant
		precision string
		provider  string
		says      string
	}{
		"the CPU alone":      {[]deployment.Variant{fp32, int8}, "int8", emu.CPU, "fp32 with openvino is worth 0.9 on 1000 samples, not recommended: it was not measured here"},
		"both are better":    {[]deployment.Variant{by(fp32, 1e-3), by(int8, 5e-4)}, "int8", emu.OpenVINO, "that of fp32 with openvino"},
		"fp32 by it is best": {[]deployment.Variant{by(fp32, 1e-3), by(int8, 5e-3)}, "fp32", emu.OpenVINO, "is 1.5 times as good as that of int8 with cpu"},
	} {
		answer, err := deployment.Compare(one.variants, target, nil, settings, deployment.Tolerance{Loss: 0.01})
		if err != nil {
			t.Fatal(err)
		}
		var text strings.Builder
		for _, each := range answer.Precisions {
			text.WriteString(each.String() + "\n")
		}
		if c := answer.Configuration; c.Precision != one.precision || c.Provider != one.provider || len(answer.Precisions) != 4 || !strings.Contains(text.String(), one.says) {
			t.Errorf("%s: it is %+v:\n%s", name, c, &text)
		}
	}
	plain, err := deployment.Find(took(t, "", 32, 0, 1, 0).Architecture, target, []emu.Architecture{took(t, "", 16, 2e-3, 1.01, 0).Architecture}, fastest)
	other, err2 := deployment.Find(took(t, "", 32, 0, 1, 0).Architecture, target, []emu.Architecture{by(took(t, "", 16, 2e-3, 1.01, 0), 1e-6).Architecture}, fastest)
	if err != nil || err2 != nil || plain.LatencySeconds != other.LatencySeconds {
		t.Errorf("an estimate is %v, and %v beside a run by another provider (%v, %v)", plain.LatencySeconds, other.LatencySeconds, err, err2)
	}
}

// What is recommended is measured again by each provider.
func TestAgainByEachProvider(t *testing.T) {
	now := time.Date(2026, 1, 9, 12, 0, 0, 0, time.UTC)
	a := by(took(t, "", 32, 2e-3, 1.01, 0), 1e-3).Architecture
	for i := range a.Runs {
		a.Runs[i].At = now.Add(-48 * time.Hour)
	}
	settings := deployment.Settings{BatchLow: 1, BatchHigh: 1, CoresHigh: 1, Objective: fastest.Objective, Providers: emu.Providers()}
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Board: true}
	own := deployment.Cell{Batch: 1, Threads: 1}
	for _, has := range [][]string{nil, {emu.OpenVINO}} {
		target.Providers = has
		want := []deployment.Cell{own}
		if has != nil {
			want = append(want, deployment.Cell{Batch: 1, Threads: 1, Provider: emu.OpenVINO})
		}
		if got, err := deployment.Again(a, target, nil, settings, deployment.Checking{Now: now}); err != nil || !slices.Equal(got, want) {
			t.Errorf("a device with %v: %v, want %v (%v)", has, got, want, err)
		}
	}
}
