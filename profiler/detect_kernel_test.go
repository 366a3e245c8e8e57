package profiler

import (
	"strings"
	"testing"
)

// A setting that refuses nothing is not to be changed.
func TestAdviceOnCountersChangesOnlyWhatRefusesThem(t *testing.T) {
	for paranoid, sysctl := range map[string]bool{"-1": false, "2": false, "3": true, "4": true, "unknown": true} {
		if advice := allowCounters(paranoid); strings.Contains(advice, "sysctl") != sysctl || !strings.Contains(advice, "seccomp") {
			t.Errorf("perf_event_paranoid %s: %s", paranoid, advice)
		}
	}
}
