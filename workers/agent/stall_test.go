package agent

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/clock"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/script"
)

// TestSignsOfLife lets a run of the past hour be looked at: what it did, and
// for how long it has been quiet at the end.
func TestSignsOfLife(t *testing.T) {
	const start = clock.Moment(24 * time.Hour)
	at := func(minutes int) clock.Moment { return start + clock.Moment(time.Duration(minutes)*time.Minute) }
	tests := map[string]struct {
		live func(r *run)
		want time.Duration
	}{
		"nothing at all":     {func(*run) {}, time.Hour},
		"a report":           {func(r *run) { r.sign = at(20) }, 40 * time.Minute},
		"output":             {func(r *run) { r.watchdog.Heard.Store(int64(at(50))) }, 10 * time.Minute},
		"a call under way":   {func(r *run) { r.busy = 1 }, 0},
		"it asks for more":   {func(r *run) { r.asking = &script.Asking{} }, 0},
		"no process":         {func(r *run) { r.process = nil }, 0},
		"a clock that jumps": {func(r *run) { r.sign = at(70) }, 0},
		"a busy CPU": {func(r *run) {
			for minute := 1; minute <= 60; minute++ {
				r.watchdog.Look(at(minute), 30*float64(minute))
			}
		}, 0},
		"a CPU that was busy": {func(r *run) {
			for minute := 1; minute <= 60; minute++ {
				r.watchdog.Look(at(minute), 30*float64(min(minute, 45)))
			}
		}, 15 * time.Minute},
		"threads that look for work": {func(r *run) { // 0.2 s of CPU time a minute
			for minute := 1; minute <= 60; minute++ {
				r.watchdog.Look(at(minute), 0.2*float64(minute))
			}
		}, 59 * time.Minute}, // the first look cannot tell
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &run{process: &process.Process{}, sign: start}
			r.watchdog.Seconds = 600
			test.live(r)
			if got := r.quiet(at(60)); got != test.want {
				t.Errorf("quiet for %v, want %v", got, test.want)
			}
			if said, stalled := r.quietSeconds(at(60)), test.want >= 10*time.Minute; (said > 0) != stalled || stalled && said != test.want.Seconds() {
				t.Errorf("a heartbeat would say %g s", said)
			}
		})
	}
}
