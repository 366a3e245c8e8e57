package emu_test

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
)

var noon = time.Date(2026, 1, 1, 12, 0, 0, 0, time.UTC)

// took is a run of a batch that took so many seconds, within 2%, so many hours after noon.
func took(batch int, seconds float64, hours int) emu.Run {
	return emu.Run{Machine: "board/a", Batch: batch, Threads: 1, Seconds: seconds, Low: 0.98 * seconds, High: 1.02 * seconds, Repetitions: 100, At: noon.Add(time.Duration(hours) * time.Hour)}
}

func TestDrift(t *testing.T) {
	for _, one := range []struct {
		name    string
		again   emu.Run
		drifted bool
	}{
		{"the same", took(1, 0.1, 24), false},
		{"within the intervals", took(1, 0.103, 24), false},
		{"beyond both, by less than a tenth", took(1, 0.109, 24), false},
		{"slower", took(1, 0.2, 24), true},
		{"faster", took(1, 0.05, 24), true},
		{"slower, so unsure that both may hold", emu.Run{Machine: "board/a", Batch: 1, Threads: 1, Seconds: 0.2, Low: 0.09, High: 0.4, Repetitions: 3, At: noon.Add(24 * time.Hour)}, false},
		{"another setting", took(2, 0.2, 24), false},
	} {
		a := emu.Architecture{}.Measured([]emu.Run{took(1, 0.1, 0)}).Measured([]emu.Run{one.again})
		for range 2 {
			got := a.Runs[len(a.Runs)-1]
			if (got.Drift != nil) != one.drifted || one.drifted && (got.Drift.Seconds != 0.1 || !got.Drift.At.Equal(got.At)) {
				t.Errorf("%s: %+v", one.name, got)
			}
			a = a.Measured([]emu.Run{one.again}) // the answer was lost
		}
	}
}

// What contradicts a measurement from before a drift is of that drift; after it there can be
// another one.
func TestADriftIsFoundOnce(t *testing.T) {
	a := emu.Architecture{}.Measured([]emu.Run{took(1, 0.1, 0), took(2, 0.2, 0)})
	a = a.Measured([]emu.Run{took(1, 0.2, 24)})
	first := emu.DriftedAt(a.Runs)
	a = a.Measured([]emu.Run{took(2, 0.4, 25)})
	if got := emu.DriftedAt(a.Runs); !first.Equal(noon.Add(24*time.Hour)) || !got.Equal(first) {
		t.Errorf("found at %v and at %v", first, got)
	}
	a = a.Measured([]emu.Run{took(2, 0.2, 50)})
	if got := emu.DriftedAt(a.Runs); !got.Equal(noon.Add(50 * time.Hour)) {
		t.Errorf("the second one at %v", got)
	}
}

// What a setting took to measure adds up, and what a board says of that does not count.
func TestRepeatedMeasurementsAreCounted(t *testing.T) {
	lie := took(1, 0.1, 0)
	lie.Repeated, lie.Drift, lie.First = 1e9, &emu.Drift{At: noon.Add(1e6 * time.Hour)}, noon.Add(-time.Hour)
	a := emu.Architecture{}.Measured([]emu.Run{lie})
	for hours := range 3 {
		a = a.Measured([]emu.Run{took(1, 0.1+0.001*float64(hours), hours)})
	}
	got := a.Runs[0]
	if want := 10.0 + 10.1 + 10.2; len(a.Runs) != 1 || got.Took() < want-1e-9 || got.Took() > want+1e-9 || !got.First.Equal(noon) || got.Drift != nil {
		t.Errorf("%+v took %g, want %g", got, got.Took(), want)
	}
}
