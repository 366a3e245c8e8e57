package rapl

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/profiler/proctest"
)

// The power PMU is played by the software PMU's CPU clock, in nanoseconds of
// one CPU: a joule a second.
func TestPowerPMU(t *testing.T) {
	h := proc.NewHost(proctest.Write(t, map[string]string{
		"sys/bus/event_source/devices/power/type":                    "1\n",
		"sys/bus/event_source/devices/power/cpumask":                 "0\n",
		"sys/bus/event_source/devices/power/events/energy-pkg":       "event=0x00\n",
		"sys/bus/event_source/devices/power/events/energy-pkg.scale": "1e-9\n",
	}))
	counter, err := Open(h)
	if err != nil {
		t.Skipf("this user may not count for a whole CPU: %v", err)
	}
	defer counter.Close()
	before, err := counter.Joules(time.Now())
	if err != nil {
		t.Fatal(err)
	}
	for after := before; after <= before; {
		if after, err = counter.Joules(time.Now()); err != nil {
			t.Fatal(err)
		}
	}
	if counter.Source != "perf power PMU" || len(counter.Names()) != 1 || counter.Names()[0] != "energy-pkg" {
		t.Errorf("got %v from %s", counter.Names(), counter.Source)
	}
}

func TestPowerEvent(t *testing.T) {
	tests := []struct {
		name, event, scale string
		config             uint64
		unit               float64
	}{
		{"as the kernel writes it", "event=0x02\n", "2.3283064365386962890625e-10\n", 2, 2.3283064365386962890625e-10},
		{"no event", "umask=0x02", "1e-9", 0, 0},
		{"no number", "event=two", "1e-9", 0, 0},
		{"no scale", "event=0x02", "", 0, 0},
		{"scale is NaN", "event=0x02", "NaN", 0, 0},
		{"scale is below zero", "event=0x02", "-1e-9", 0, 0},
		{"scale is infinite", "event=0x02", "inf", 0, 0},
	}
	for _, test := range tests {
		t.Run(test.name, func(t *testing.T) {
			config, unit, err := powerEvent(proc.NewHost(proctest.Write(t, map[string]string{"e": test.event, "e.scale": test.scale})), "e")
			if (err != nil) != (test.unit == 0) || config != test.config || unit != test.unit {
				t.Errorf("got %d, %g, %v", config, unit, err)
			}
		})
	}
}
