// Package wholemachine measures seconds, joules and CPU time of the whole machine
// over a span, for benchmarks whose arms are of several processes.
package wholemachine

import (
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/profiler"
)

// BusySeconds is the CPU time that all processes of the machine have used; 0
// where the kernel does not tell.
func BusySeconds() float64 {
	text, _ := os.ReadFile("/proc/stat")
	first, _, _ := strings.Cut(string(text), "\n")
	fields := strings.Fields(first)
	if len(fields) < 9 {
		return 0
	}
	ticks := 0.0
	for _, at := range []int{1, 2, 3, 6, 7} { // user, nice, system, irq, softirq
		n, _ := strconv.ParseFloat(fields[at], 64)
		ticks += n
	}
	return ticks / 100
}

// Meter measures a span.
type Meter struct {
	meter  *profiler.Meter
	window *profiler.Window
	start  time.Time
	busy   float64
}

// Start begins a span.
func Start() *Meter {
	m := &Meter{meter: profiler.OpenMeter(profiler.MeterOptions{}), busy: BusySeconds()}
	m.window, m.start = m.meter.Open(BusySeconds), time.Now()
	return m
}

// Stop returns the seconds, the joules and how they were obtained, and the CPU
// time.
func (m *Meter) Stop() (seconds float64, energy profiler.Energy, busy float64) {
	seconds = time.Since(m.start).Seconds()
	energy = m.window.Lap()
	m.window.Close()
	m.meter.Close()
	return seconds, energy, BusySeconds() - m.busy
}
