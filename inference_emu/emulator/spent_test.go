package emulator

import (
	"math"
	"testing"
)

// A stall counts neither in the joules nor in the samples a second: their product is the
// mean power.
func TestJoulesAndRateGoTogether(t *testing.T) {
	m := Measurement{Cell: Cell{Batch: 4}, MeasuredSeconds: 30, Latency: Latency{P50: 0.1, Mean: 0.3}}
	m.SamplesPerSecond = m.rate()
	m.spent(600, 40)
	if watts := m.JoulesPerSample * m.SamplesPerSecond; math.Abs(watts-15) > 1e-9 || m.SamplesPerSecond != 40 {
		t.Errorf("%g W, %g samples a second", watts, m.SamplesPerSecond)
	}
}
