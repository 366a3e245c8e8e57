package agent

import (
	"context"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/workers/agent/clock"

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
		"output":             {func(r *run) { r.vigil.heard.Store(int64(at(50))) }, 10 * time.Minute},
		"a call under way":   {func(r *run) { r.busy = 1 }, 0},
		"it asks for more":   {func(r *run) { r.asking = &script.Asking{} }, 0},
		"no process":         {func(r *run) { r.process = nil }, 0},
		"a clock that jumps": {func(r *run) { r.sign = at(70) }, 0},
		"a busy CPU": {func(r *run) {
			for minute := 1; minute <= 60; minute++ {
				r.vigil.look(at(minute), 30*float64(minute))
			}
		}, 0},
		"a CPU that was busy": {func(r *run) {
			for minute := 1; minute <= 60; minute++ {
				r.vigil.look(at(minute), 30*float64(min(minute, 45)))
			}
		}, 15 * time.Minute},
		"threads that look for work": {func(r *run) { // 0.2 s of CPU time a minute
			for minute := 1; minute <= 60; minute++ {
				r.vigil.look(at(minute), 0.2*float64(minute))
			}
		}, 59 * time.Minute}, // the first look cannot tell
	}
	for name, test := range tests {
		t.Run(name, func(t *testing.T) {
			r := &run{process: &process{}, sign: start, lease: protocol.Lease{StallSeconds: 600}}
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

func TestAStallIsToldBeforeItIsEnded(t *testing.T) {
	ctx, cancel := context.WithCancelCause(t.Context())
	defer cancel(nil)
	a := &Agent{hurry: make(chan struct{}, 1)}
	r := &run{agent: a, ctx: ctx, process: &process{}, lease: protocol.Lease{StallSeconds: 60, StallEnds: true}}
	step := func(after time.Duration) (asked, end bool) {
		r.mutex.Lock()
		end = r.tellStall(clock.Moment(after))
		r.mutex.Unlock()
		select {
		case <-a.hurry:
			asked = true
		default:
		}
		return asked, end
	}
	for _, one := range []struct {
		after      time.Duration
		noticed    bool // the server answers a heartbeat before
		asked, end bool
	}{
		{59 * time.Second, false, false, false},
		{60 * time.Second, false, true, false},
		{70 * time.Second, false, false, false}, // asked once
		{71 * time.Second, true, false, true},
		{95 * time.Second, false, false, true}, // it is still so
	} {
		if one.noticed {
			r.noticed()
		}
		if asked, end := step(one.after); asked != one.asked || end != one.end {
			t.Errorf("after %v: a heartbeat is asked for: %v; it is ended: %v", one.after, asked, end)
		}
	}
	r.sign = clock.Moment(100 * time.Second) // it reports again
	if asked, end := step(120 * time.Second); asked || end {
		t.Error("a script that reports again is taken for stalled")
	}
	if asked, end := step(160 * time.Second); !asked || end {
		t.Errorf("the second time: a heartbeat is asked for: %v; it is ended: %v", asked, end)
	}
	if _, end := step(160*time.Second + noticePatience); !end {
		t.Error("a server that does not answer keeps it alive")
	}
	r.lease.StallEnds = false
	if _, end := step(time.Hour); end {
		t.Error("it is ended although the study does not want that")
	}
}
