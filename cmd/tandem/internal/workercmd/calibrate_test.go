package workercmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/power"
	"github.com/tandem-tune/tandem/workers/agent"
)

// TestWorkersEstimateAsTheMachineWasCalibrated calibrates a machine of two cores that
// takes 30 W and 8 W for a busy core, and looks at what workers estimate by.
func TestWorkersEstimateAsTheMachineWasCalibrated(t *testing.T) {
	t.Setenv("XDG_STATE_HOME", t.TempDir())
	method := func(o Options) string {
		t.Helper()
		var made agent.Options
		made.WattsPerCore, made.IdleWattsPerCore = o.wattsPerCore, o.idleWattsPerCore
		done, err := o.OpenMeter(&made)
		if err != nil {
			t.Fatal(err)
		}
		defer done()
		m := profiler.OpenMeter(profiler.MeterOptions{Root: t.TempDir(), WattsPerCore: made.WattsPerCore, IdleWattsPerCore: made.IdleWattsPerCore, Origin: made.WattsOrigin})
		defer m.Close()
		return m.Method()
	}
	before := method(Options{})
	path, machine, err := calibrationOfHere()
	if err != nil {
		t.Fatal(err)
	}
	readings := func(watts func(busy float64) float64) (list []power.Reading) {
		for i := range 40 {
			busy := float64(i%7) / 3
			list = append(list, power.Reading{Watts: watts(busy), Busy: busy, Cores: 2})
		}
		return list
	}
	var out bytes.Buffer
	if err := keepCalibration(readings(func(busy float64) float64 { return 30 + 8*busy }), "plug", path, machine, &out); err != nil {
		t.Fatal(err)
	}
	if !strings.Contains(out.String(), "8 W per busy core and 15 W per core at rest, from 40 readings") || !strings.Contains(out.String(), "left out it is off by 0.0%") {
		t.Errorf("it says %s", out.String())
	}
	calibrated := method(Options{})
	if !strings.HasPrefix(calibrated, "estimate: 8 W per busy core, 15 W per core at rest, calibrated 20") || !strings.Contains(calibrated, "by meter plug") || strings.Contains(before, "calibrated") {
		t.Errorf("before it was %q, and now %q", before, calibrated)
	}
	if err := keepCalibration(readings(func(float64) float64 { return 40 }), "other", path, machine, &out); err == nil {
		t.Error("a meter that follows no load was taken")
	}
	if again := method(Options{}); again != calibrated {
		t.Errorf("a calibration that was refused left %q", again)
	}
	if owned := method(Options{wattsPerCore: 9}); !strings.Contains(owned, "9 W per busy core") || !strings.Contains(owned, "as its owner says") {
		t.Errorf("what the owner says does not hold: %q", owned)
	}
}

func TestACalibrationNeedsAMeterAndTime(t *testing.T) {
	for _, args := range [][]string{{"--calibrate-power", "1h"}, {"--calibrate-power", "9m", "--meter", "hwmon"}, {"--calibrate-power", "25h", "--meter", "hwmon"}} {
		command := DoctorCommand()
		command.SetArgs(args)
		if err := command.Execute(); err == nil || !strings.Contains(err.Error(), "--calibrate-power takes 10m to 24h") {
			t.Errorf("%v: %v", args, err)
		}
	}
}
