package deployment_test

import (
	"slices"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// What is recommended is measured again once a day, or with other software; the rest only
// after that contradicted what was measured.
func TestAgain(t *testing.T) {
	now := time.Date(2026, 1, 9, 12, 0, 0, 0, time.UTC)
	target := deployment.Target{Device: find(t, "raspberry-pi-4"), Machine: "raspberry-pi-4", Board: true}
	settings := deployment.Settings{BatchLow: 1, BatchHigh: 4, Objective: tuning.Latency}
	run := func(batch, threads int, seconds float64, ago time.Duration) emu.Run {
		return emu.Run{Machine: "raspberry-pi-4", Batch: batch, Threads: threads, Seconds: seconds, Low: seconds, High: seconds, Repetitions: 9, At: now.Add(-ago), Software: "1.30"}
	}
	drifted := run(1, 4, 0.02, time.Hour)
	drifted.Drift = &emu.Drift{At: drifted.At, Seconds: 0.01}
	const day = 24 * time.Hour
	best := []deployment.Cell{{Batch: 1, Threads: 4}}
	for _, one := range []struct {
		name     string
		software []string
		runs     []emu.Run
		want     []deployment.Cell
	}{
		{"nothing was measured", nil, nil, nil},
		{"all is new", []string{"1.30"}, []emu.Run{run(1, 4, 0.01, time.Hour), run(2, 4, 0.02, time.Hour)}, nil},
		{"others are old", []string{"1.30"}, []emu.Run{run(1, 4, 0.01, time.Hour), run(2, 4, 0.02, 9*day)}, nil},
		{"the recommended one is old", []string{"1.30"}, []emu.Run{run(1, 4, 0.01, day), run(2, 4, 0.02, 9*day)}, best},
		{"other software", []string{"1.31"}, []emu.Run{run(1, 4, 0.01, time.Hour), run(2, 4, 0.02, time.Hour)}, best},
		{"another board has the software", []string{"1.31", "1.30"}, []emu.Run{run(1, 4, 0.01, time.Hour)}, nil},
		{"no board told its software", nil, []emu.Run{run(1, 4, 0.01, time.Hour)}, nil},
		{"it drifted: those from before", []string{"1.30"}, []emu.Run{drifted, run(2, 4, 0.02, day), run(3, 4, 0.03, time.Minute)}, []deployment.Cell{{Batch: 2, Threads: 4}}},
		{"it drifted: none that no deployment can have", []string{"1.30"}, []emu.Run{drifted, run(9, 4, 0.02, day)}, nil},
	} {
		a := network(t, 32)
		a.Runs = one.runs
		got, err := deployment.Again(a, target, nil, settings, deployment.Checking{Now: now, Software: one.software})
		if err != nil || !slices.Equal(got, one.want) {
			t.Errorf("%s: %v, want %v (%v)", one.name, got, one.want, err)
		}
	}
}
