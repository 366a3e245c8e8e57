package profiler

import (
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"math"
	"slices"
	"strings"
	"testing"
	"time"
)

func TestNextSample(t *testing.T) {
	now := time.Unix(100, 0)
	for name, test := range map[string]struct{ due, spent, want time.Duration }{
		"in time":        {900 * time.Millisecond, 2 * time.Millisecond, 900 * time.Millisecond},
		"a large tree":   {900 * time.Millisecond, 10 * time.Millisecond, 2 * time.Second},
		"an own choice":  {10 * time.Millisecond, 0, 10 * time.Millisecond},
		"already late":   {-3 * time.Second, 0, 0},
		"late and large": {-3 * time.Second, 10 * time.Millisecond, 2 * time.Second},
	} {
		if got := nextSample(now, now.Add(test.due), test.spent).Sub(now); got != test.want {
			t.Errorf("%s: in %v, want %v", name, got, test.want)
		}
	}
}

func TestStatesAreMeansAndSumsAreRates(t *testing.T) {
	at := func(sum, level float64) proc.Observation {
		o := proc.NewObservation()
		o.Sums["tree.cpu_user"], o.States["tree.threads"] = sum, level
		return o
	}
	s := newSpan(nil, at(10, 0))
	s.observe(1, nil, at(11, 2))
	s.observe(1, nil, at(14, 6))
	s.observe(1, nil, at(13, 4)) // a process ended before its parent waited for it
	p := s.profile(nil, perf.HostLevel, nil)
	if rate, _ := p.HostValue("tree.cpu_user"); math.Abs(rate-4.0/3) > 1e-9 {
		t.Errorf("%g cores, want 4/3", rate)
	}
	for _, metric := range p.Host {
		if metric.Name == "tree.threads" && (metric.Value != 4 || *metric.Highest != 6) {
			t.Errorf("threads: mean %g, highest %g", metric.Value, *metric.Highest)
		}
	}
}

func TestEveryIntervalIsSampled(t *testing.T) {
	launched, _ := launchShell(t, "sleep 0.5")
	if err := launched.Wait(); err != nil {
		t.Fatal(err)
	}
	if p := launched.Recorder.Whole(); p.Samples != 2 { // the first and the last look
		t.Errorf("%d samples, want 2 with an interval of an hour", p.Samples)
	}
	often, err := Launch(sleeping(), perf.Events(), 10*time.Millisecond)
	if err != nil {
		t.Skipf("no sleep: %v", err)
	}
	if err := often.Wait(); err != nil {
		t.Fatal(err)
	}
	if p := often.Recorder.Whole(); p.Samples < 4 {
		t.Errorf("%d samples in half a second, one each 10 ms was asked for", p.Samples)
	}
}

// TestSharedCountersAreScaled replays a counter that is shared: in the second
// window the event had it a tenth of the time, in the third never.
func TestSharedCountersAreScaled(t *testing.T) {
	events := []perf.Event{{Name: "instructions"}, {Name: "cpu-cycles"}, {Name: "cache-misses"}, {Name: "task-clock"}}
	s := newSpan(make([]perf.Counted, len(events)), proc.NewObservation())
	window := func(enabled, running, instructions, misses uint64) {
		s.observe(1, []perf.Counted{
			{Value: instructions, Enabled: enabled, Running: running}, {Enabled: enabled, Running: running},
			{Value: misses, Enabled: enabled, Running: running}, {Value: enabled, Enabled: enabled, Running: enabled},
		}, proc.NewObservation())
	}
	window(100, 100, 1000, 10)
	window(200, 110, 1300, 11) // 300 × 10 and 1 × 10
	window(300, 110, 1300, 11) // not seen: like the others
	p := s.profile(events, perf.HostLevel, nil)
	instructions, misses := event(t, p, "instructions"), event(t, p, "cache-misses")
	if want := 4000 * 1.5; math.Abs(instructions.Total-want) > 1e-9 || !instructions.Scaled || math.Abs(instructions.PerSecond-want/3) > 1e-9 {
		t.Errorf("got %+v, want a scaled total of %g", instructions, want)
	}
	if want := 110.0 / 300; math.Abs(misses.RunFraction-want) > 1e-9 || math.Abs(*misses.PerInstruction-30.0/6000) > 1e-12 {
		t.Errorf("got %+v with %g per instruction", misses, *misses.PerInstruction)
	}
	if clock := event(t, p, "task-clock"); clock.Scaled || clock.RunFraction != 1 {
		t.Errorf("the software event is scaled: %+v", clock)
	}

	s.restart()
	window(400, 110, 1300, 11)
	p = s.profile(events, perf.HostLevel, nil)
	if _, has := p.Event("instructions"); has {
		t.Error("an event that never had a counter in the span has a value")
	}
	if !slices.ContainsFunc(p.Missing, func(m proc.Missing) bool {
		return m.Name == "instructions" && strings.Contains(m.Reason, "never had a counter")
	}) {
		t.Errorf("it is not missing: %v", p.Missing)
	}
	s.restart()
	window(500, 160, 1400, 11)
	if instructions := event(t, s.profile(events, perf.HostLevel, nil), "instructions"); math.Abs(instructions.Total-200) > 1e-9 {
		t.Errorf("the span after it has %+v, want 200", instructions)
	}
}

// HostValue is the value of the host's metric with the name.
func (p Profile) HostValue(name string) (float64, bool) {
	at := slices.IndexFunc(p.Host, func(m HostMetric) bool { return m.Name == name })
	if at < 0 {
		return 0, false
	}
	return p.Host[at].Value, true
}
