package agent_test

import (
	"math"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent"
)

// TestReportsSayWhatATrialUsedOfItsGPU: an agent finds the script among the
// driver's processes, and each report has what was seen since the one before.
func TestReportsSayWhatATrialUsedOfItsGPU(t *testing.T) {
	s, place := newServer(), t.TempDir()
	s.add(script(t), as("gated", place), 2)
	var looks, stage atomic.Int64 // how often it was there; what it does
	work(t, s, agent.Options{}.WithGPU(func() profiler.GPUUse {
		use := profiler.GPUUse{Utilization: 0.25, UsedBytes: 5 << 30, MemoryBytes: 16 << 30}
		noted, _ := os.ReadFile(filepath.Join(place, "pids"))
		pid, err := strconv.Atoi(strings.TrimSpace(string(noted)))
		if err != nil {
			return use // it has not begun
		}
		looks.Add(1)
		s.change(func() {})
		use.Processes = append(use.Processes, profiler.GPUProcess{PID: pid, MemoryBytes: 4 << 30, Utilization: 0.2})
		if stage.Load() == 1 {
			use.Processes = append(use.Processes, profiler.GPUProcess{PID: 1 << 30, MemoryBytes: 1 << 30, Utilization: 0.05})
		}
		return use
	}))
	s.await(t, "the first report", func() bool { return len(s.attempts) == 1 })
	stage.Store(1)
	before := looks.Load()
	s.await(t, "it is seen beside another", func() bool { return looks.Load() > before+2 })
	if err := os.WriteFile(filepath.Join(place, "go"), nil, 0o600); err != nil {
		t.Fatal(err)
	}
	s.await(t, "the second report", func() bool { return len(s.attempts) == 2 })
	s.mutex.Lock()
	defer s.mutex.Unlock()
	use := s.attempts[1].GPUUse
	if use == nil || use.MemoryBytes != 4<<30 || use.GPUMemoryBytes != 16<<30 || use.Seconds <= 0 || use.Seconds > 60 {
		t.Fatalf("the second report says %+v", use)
	}
	switch {
	case use.Alone && math.Abs(use.Utilization-0.25) > 1e-9: // seen alone after the first report, too
		t.Errorf("alone, it kept busy %g", use.Utilization)
	case !use.Alone && math.Abs(use.Utilization-0.2) > 1e-9:
		t.Errorf("beside another, it kept busy %g", use.Utilization)
	}
}
