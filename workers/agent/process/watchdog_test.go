package process

import (
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/clock"
)

func TestAStallIsToldBeforeItIsEnded(t *testing.T) {
	w := &Watchdog{Seconds: 60, Ends: true}
	var sign clock.Moment // of the script
	step := func(after time.Duration) (asked, end bool) {
		return w.Check(w.Quiet(clock.Moment(after), sign))
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
			w.Notice()
		}
		if asked, end := step(one.after); asked != one.asked || end != one.end {
			t.Errorf("after %v: a heartbeat is asked for: %v; it is ended: %v", one.after, asked, end)
		}
	}
	sign = clock.Moment(100 * time.Second) // it reports again
	if asked, end := step(120 * time.Second); asked || end {
		t.Error("a script that reports again is taken for stalled")
	}
	if asked, end := step(160 * time.Second); !asked || end {
		t.Errorf("the second time: a heartbeat is asked for: %v; it is ended: %v", asked, end)
	}
	if _, end := step(160*time.Second + noticePatience); !end {
		t.Error("a server that does not answer keeps it alive")
	}
	w.Ends = false
	if _, end := step(time.Hour); end {
		t.Error("it is ended although the study does not want that")
	}
}
