package profiler

import (
	"github.com/tandem-tune/tandem/profiler/proc"
	"math"
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
	p := s.profile(nil, HostLevel, nil)
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
	often, err := Launch(sleeping(), Events(), 10*time.Millisecond)
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
