package process_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/process"
)

// TestAProfileFitsIntoAReport: of a machine with many events all metrics of the
// host stay, and the first events.
func TestAProfileFitsIntoAReport(t *testing.T) {
	p := profiler.Profile{Seconds: 1, Level: perf.KernelLevel}
	for i := range 200 {
		p.Events = append(p.Events, profiler.EventProfile{Name: fmt.Sprintf("event-%03d", i), PerSecond: float64(i), RunFraction: 0.5})
	}
	for i := range 38 {
		p.Host = append(p.Host, profiler.HostMetric{Name: fmt.Sprintf("tree.%03d", i), Value: float64(i)})
	}
	compact := process.CompactProfile(p)
	if faults := compact.Faults(); len(faults) > 0 {
		t.Errorf("the server would refuse it: %v", faults)
	}
	if len(compact.Host) != 38 || len(compact.Events) != trial.MaxProfileValues-40 || compact.RunFraction != 0.5 {
		t.Errorf("%d metrics and %d events, a counter for %g of the time", len(compact.Host), len(compact.Events), compact.RunFraction)
	}
	for i := range len(compact.Events) {
		if _, has := compact.Events[fmt.Sprintf("event-%03d", i)]; !has {
			t.Errorf("event %d is not among the first", i)
		}
	}
	for i := range 200 {
		p.Host = append(p.Host, profiler.HostMetric{Name: fmt.Sprintf("machine.%03d", i)})
	}
	if faults := process.CompactProfile(p).Faults(); len(faults) > 0 {
		t.Errorf("the server would refuse it: %v", faults)
	}
	if process.CompactProfile(profiler.Profile{}) != nil {
		t.Error("a profile of no time at all")
	}
}
