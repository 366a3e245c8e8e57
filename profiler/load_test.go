package profiler

import (
	"errors"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/profiler/proctest"
	"github.com/tandem-tune/tandem/profiler/rapl"
)

func TestLoadIsWhatHappenedInBetween(t *testing.T) {
	root := proctest.Write(t, map[string]string{"proc/meminfo": "MemTotal: 1000 kB\nMemAvailable: 250 kB\n"})
	m := OpenMeter(MeterOptions{Root: root, WattsPerCore: 8, IdleWattsPerCore: 2, Cores: 4})
	m.cpu, m.gpu = nil, nil
	at := time.Now()
	// Four cores over 10 s, of which 15 s of CPU time were used.
	before := gaugeReading{at: at, busy: 100, all: 1000}
	now := gaugeReading{at: at.Add(10 * time.Second), busy: 115, all: 1040, cpu: 300}
	load, ok := m.between(before, now)
	if !ok || load.CPUUtilization != 0.375 || load.MemoryUtilization != 0.75 || math.Abs(load.Watts-(1.5*8+4*2)) > 1e-9 || !strings.HasPrefix(load.Method, "estimate: 8 W") {
		t.Errorf("%+v, %v", load, ok)
	}
	m.cpu = &rapl.Counter{}
	if load, ok := m.between(before, now); !ok || load.Watts != 30 || load.Method != "rapl" {
		t.Errorf("with a meter: %+v, %v", load, ok)
	}
	now.cpuErr = errors.New("gone")
	if load, ok := m.between(before, now); !ok || load.Watts != 20 || !strings.HasPrefix(load.Method, "estimate") {
		t.Errorf("with a meter that fails: %+v, %v", load, ok)
	}
	for name, same := range map[string]gaugeReading{"no time": before, "a kernel that does not tell": {at: now.at, busy: 100, all: 1000}} {
		if load, ok := m.between(before, same); ok {
			t.Errorf("after %s: %+v", name, load)
		}
	}
}

func TestGaugeTellsNothingAtOnce(t *testing.T) {
	m := OpenMeter(MeterOptions{Root: proctest.Write(t, map[string]string{"proc/stat": "cpu  1000 0 0 5000 0 0 0 0 0 0\n"})})
	defer m.Close()
	if load, ok := m.Gauge().Read(); ok {
		t.Errorf("right after it began: %+v", load)
	}
}
