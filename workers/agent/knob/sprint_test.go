package knob

import (
	"math"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/agent/agenttest"
	"github.com/tandem-tune/tandem/workers/agent/clock"
)

func TestTheAccountOfSprints(t *testing.T) {
	start := clock.Now()
	after := func(seconds float64) clock.Moment {
		return start + clock.Moment(time.Duration(seconds*float64(time.Second)))
	}
	s := NewAccount(Budget{Joules: 100, Watts: 10, ExtraWatts: 60}, start)
	left := func(seconds, want float64) {
		t.Helper()
		if got := s.left(after(seconds)); math.Abs(got-want) > 1e-6 {
			t.Errorf("after %g s %g J are left, want %g", seconds, got, want)
		}
	}
	left(5, 100) // it holds no more
	if !s.begin(after(5)) {
		t.Fatal("a full account allows no sprint")
	}
	left(6, 50)
	if !s.begin(after(6)) { // two at once
		t.Fatal("half an account allows no second sprint")
	}
	left(6.1, 39)
	left(7, 0)
	if s.begin(after(7)) {
		t.Error("an empty account allows a sprint")
	}
	s.end(after(7))
	s.end(after(7))
	left(9, 20)
	if account := s.Balance(after(9)); account == nil || math.Abs(account.Joules-20) > 1e-6 || account.Of != 100 || account.Watts != 10 || account.ExtraWatts != 60 {
		t.Errorf("the server is told %+v", account)
	}
	if none := NewAccount(Budget{}, start); none.Balance(after(1)) != nil {
		t.Error("the server is told of an account that there is not")
	}
	for _, wrong := range []Budget{{Joules: 1}, {ExtraWatts: 1}, {Joules: -1, ExtraWatts: 1}, {Joules: math.NaN(), ExtraWatts: 1}, {Joules: 1, ExtraWatts: 1, Watts: math.Inf(1)}} {
		if wrong.Check() == nil {
			t.Errorf("%+v was taken", wrong)
		}
	}
}

func TestForHowLongItSprinted(t *testing.T) {
	start := clock.Now()
	after := func(seconds float64) clock.Moment {
		return start + clock.Moment(time.Duration(seconds*float64(time.Second)))
	}
	var s stopwatch
	if took := s.take(after(1)); took != 0 {
		t.Errorf("before anything it is %s", took)
	}
	s.turn(true, after(2))
	if took := s.take(after(5)); took != 3*time.Second {
		t.Errorf("of 3 s it is %s", took)
	}
	s.turn(false, after(6))
	s.turn(true, after(8))
	if took := s.take(after(10)); took != 3*time.Second {
		t.Errorf("of 1 s and 2 s it is %s", took)
	}
	s.turn(false, after(10))
	if took := s.take(after(20)); took != 0 {
		t.Errorf("after its end it is %s", took)
	}
}

func TestSprintsPutEverythingToItsHighestAndBack(t *testing.T) {
	root, policies := agenttest.FrequencyTree(t)
	c := testControls(t, root, nil)
	runner := &Subject{}
	names, err := c.speedUp(runner)
	if err != nil || strings.Join(names, " ") != "cpu_frequency_mhz cpu_governor" {
		t.Fatalf("%v, %v", names, err)
	}
	for _, policy := range policies {
		if got := agenttest.Content(t, policy, "scaling_max_freq") + " " + agenttest.Content(t, policy, "scaling_governor"); got != "3600000 performance" {
			t.Errorf("%s has %s", policy, got)
		}
	}
	if again, err := c.speedUp(&Subject{}); err == nil || !strings.Contains(err.Error(), "highest already") || !strings.Contains(err.Error(), "there is no GPU here") {
		t.Errorf("what is at its highest was sped up by %v: %v", again, err)
	}
	for _, name := range names {
		c.devices.release(runner, name)
	}
	for _, policy := range policies {
		if got := agenttest.Content(t, policy, "scaling_max_freq") + " " + agenttest.Content(t, policy, "scaling_governor"); got != "3000000 schedutil" {
			t.Errorf("afterwards %s has %s", policy, got)
		}
	}
	if nothing, err := testControls(t, t.TempDir(), nil).speedUp(runner); err == nil {
		t.Errorf("a machine without knobs was sped up by %v", nothing)
	}
	if can := Sprinting(root); !can.Available || !strings.Contains(can.Detail, "cpu_governor") {
		t.Errorf("%+v", can)
	}
	if cannot := Sprinting(t.TempDir()); cannot.Available || !strings.Contains(cannot.Reason, "no control over the CPU's frequency") {
		t.Errorf("%+v", cannot)
	}
}
