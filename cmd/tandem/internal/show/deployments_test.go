package show

import (
	"testing"
	"time"

	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
)

// An answer says how old its measurement is, and what it took before a drift.
func TestMeasured(t *testing.T) {
	at := time.Date(2026, 1, 2, 12, 0, 0, 0, time.Local)
	one := deployment.Deployment{MeasuredAt: &at}
	if got := Measured(one, at.Add(3*time.Hour)); got != "measured on 2026-01-02 12:00, 3h00m ago" {
		t.Error(got)
	}
	one.Drift = &emu.Drift{At: at.Add(-time.Hour), Seconds: 0.0031}
	if got := Measured(one, at.Add(5*time.Second)); got != "measured on 2026-01-02 12:00, 5.0s ago; it drifted: it took 3.1 ms until 2026-01-02 11:00" {
		t.Error(got)
	}
}
