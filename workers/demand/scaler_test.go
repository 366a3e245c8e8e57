package demand_test

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/tandem-tune/tandem/workers/demand"
)

// crew is a pool in simulated time that does as a scaler decides.
type crew struct {
	t      *testing.T
	scaler demand.Scaler
	hosts  []demand.Host
	minute int
	past   []demand.Change
}

func newCrew(t *testing.T, names ...string) *crew {
	c := &crew{t: t, scaler: demand.Scaler{Least: 1, Pace: demand.Pace{Steady: 3, Pause: 10 * time.Minute}, Delay: time.Minute}}
	for _, name := range names {
		c.hosts = append(c.hosts, demand.Host{ID: "id-" + name, Name: name, Holder: "h", Capacity: 4, GPUs: true})
	}
	return c
}

func (c *crew) host(name string) *demand.Host {
	return &c.hosts[slices.IndexFunc(c.hosts, func(one demand.Host) bool { return one.Name == name })]
}

// goesOn lets a minute pass, and returns what was done or seen.
func (c *crew) goesOn(wanted float64, unknown string) []string {
	c.t.Helper()
	c.minute++
	changes := c.scaler.Decide(at(60*c.minute), demand.Situation{Hosts: c.hosts, Wanted: wanted, Unknown: unknown, Past: c.past})
	c.past = append(c.past, changes...)
	var said []string
	for _, one := range changes {
		if one.Reason == "" || one.Pretended != c.scaler.Pretend || one.Capacity <= 0 {
			c.t.Errorf("minute %d: %+v", c.minute, one)
		}
		said = append(said, fmt.Sprintf("%s %s", one.Worker, one.Action))
		if one.Pretended {
			continue
		}
		for i, host := range c.hosts {
			if host.Name != one.Worker || host.Holder != one.Holder {
				continue
			}
			switch one.Action {
			case demand.Drain:
				if host.Draining || host.Silent {
					c.t.Errorf("minute %d: %+v drains %+v", c.minute, one, host)
				}
				c.hosts[i].Draining, c.hosts[i].Advised, c.hosts[i].Drained = true, true, one.At
			case demand.Wake, demand.Forgotten:
				if !host.Advised {
					c.t.Errorf("minute %d: the drain of a person is taken back: %+v", c.minute, one)
				}
				c.hosts[i].Draining, c.hosts[i].Advised = false, false
			}
		}
	}
	return said
}

// expect lets minutes pass with what is wanted, and compares all that was done.
func (c *crew) expect(minutes int, wanted float64, want ...string) {
	c.t.Helper()
	var got []string
	for range minutes {
		got = append(got, c.goesOn(wanted, "")...)
	}
	if !slices.Equal(got, want) {
		c.t.Errorf("minute %d, %g wanted: %q, want %q", c.minute, wanted, got, want)
	}
}

func TestTheServerDrainsWhatIsNotWanted(t *testing.T) {
	c := newCrew(t, "a", "b", "c")
	c.host("a").Trials, c.host("b").Trials = 2, 1
	c.expect(2, 5)            // not steady yet
	c.expect(1, 5, "c drain") // it runs nothing
	c.expect(5, 8)            // enough: nothing is done
	c.expect(1, 9, "c wake")  // at once: what waits waits for it
	c.expect(9, 5)            // it was just taken back
	c.expect(1, 5, "c drain") // ten minutes after
	c.expect(3, 0, "b drain") // a trial runs there, and ends there; one GPU stays at least
	c.expect(9, 12, "b wake", "c wake")
	c.host("b").Draining = true // by a person
	c.host("a").Trials = 0
	c.expect(20, 1, "a drain")
	if c.host("b").Advised {
		t.Error("the drain of a person became the server's")
	}
	c.expect(10, 12, "a wake") // and not b
}

func TestBoundsHoldWhateverIsForecast(t *testing.T) {
	c := newCrew(t, "a", "b", "c")
	c.scaler.Least, c.scaler.Most = 4, 8
	c.expect(10, 100, "a drain")
	c.expect(10, 0, "b drain")
	c.expect(1, 100, "a wake")
	for _, one := range c.past {
		if !strings.Contains(one.Reason, "may be") && !strings.Contains(one.Reason, "are to be") {
			t.Errorf("%+v", one)
		}
	}
}

func TestWhatNobodyKnowsGivesEverythingBack(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	for range 4 {
		if said := c.goesOn(0, "the forecast needs more minutes"); len(said) > 0 {
			t.Errorf("at once: %q", said)
		}
	}
	c.expect(1, 4) // it knows again
	for range 4 {
		c.goesOn(0, "the forecast needs more minutes")
	}
	if said := c.goesOn(0, "the forecast needs more minutes"); !slices.Equal(said, []string{"a wake"}) || !strings.Contains(c.past[len(c.past)-1].Reason, "needs more minutes") {
		t.Errorf("%q, %+v", said, c.past)
	}
}

func TestMachinesThatSleepAreWokenAndSeen(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	c.host("a").Silent = true // an operator's command put it to sleep
	c.expect(4, 4, "a slept")
	c.expect(1, 8, "a wake")
	if !c.past[len(c.past)-1].Asleep {
		t.Errorf("%+v", c.past)
	}
	c.expect(2, 8) // it has its time to wake up
	c.host("a").Silent = false
	c.expect(2, 8, "a woke")
	c.host("b").Silent = true // it crashed: nobody here can wake it
	c.expect(20, 8)
}

func TestAPersonTakesADrainBack(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	c.host("a").Draining, c.host("a").Advised = false, false
	c.expect(1, 4, "a taken back")
	c.expect(9, 4, "b drain") // and not a
	c.expect(60, 0)
	c.expect(1, 8, "b wake")
	c.host("b").Trials = 1
	c.minute += 24 * 60
	c.expect(3, 4, "a drain") // a day after
}

func TestARestartedServerGoesOn(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	c.expect(1, 8, "a wake")
	c.scaler = demand.Scaler{Least: 1, Pace: demand.Pace{Steady: 3, Pause: 10 * time.Minute}, Delay: time.Minute}
	c.host("b").Trials = 1
	c.expect(9, 4) // a was just taken back, and b runs a trial
	c.expect(1, 4, "a drain")
}

func TestTrialsThatOnlyADrainedWorkerCouldRun(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	c.host("a").Sought = true
	c.expect(1, 4, "a wake")
	c.host("a").Sought = false
	c.host("b").Trials = 1
	c.expect(9, 4)
}

func TestADryRunPretends(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.scaler.Pretend = true
	c.expect(30, 4, "a drain") // once: as if it had been
	c.expect(1, 8, "a wake")
	if c.host("a").Draining {
		t.Error("it was done")
	}
}

func TestWorkersOfOneNameAreDrainedTogether(t *testing.T) {
	c := newCrew(t, "a", "a", "b")
	c.hosts[1].ID = "id-other"
	c.host("b").Trials = 3
	c.expect(10, 9) // without both of a's there are 4
	c.expect(3, 4, "a drain")
	if c.past[0].Capacity != 8 {
		t.Errorf("%+v", c.past[0])
	}
	stale := c.hosts[1]
	c.hosts = append(c.hosts[:1], c.hosts[2], demand.Host{ID: "gone", Name: stale.Name, Holder: stale.Holder, Capacity: 4, Silent: true, Draining: true, Advised: true})
	c.expect(1, 8, "a wake")
	if c.past[1].Capacity != 4 {
		t.Errorf("%+v: a worker that is gone has no GPUs", c.past[1])
	}
}

// TestWhatAPersonTookBackAfterItWokeIsLeftAlone: a machine that a person switches
// on is heard of before its drain is taken back.
func TestWhatAPersonTookBackAfterItWokeIsLeftAlone(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	c.host("a").Silent = true
	c.expect(3, 4, "a slept")
	c.host("a").Silent = false
	c.expect(2, 4, "a woke")
	c.host("a").Draining, c.host("a").Advised = false, false
	c.expect(1, 4, "a taken back")
	c.expect(60, 4, "b drain") // and not a
}

func TestWhatAPersonTookBackIsLeftAloneAtOnce(t *testing.T) {
	c := newCrew(t, "a")
	c.scaler.Least, c.scaler.Pace = 0, demand.Pace{Steady: 1, Pause: time.Minute}
	c.expect(3, 0, "a drain")
	c.host("a").Draining, c.host("a").Advised = false, false
	c.expect(60, 0, "a taken back")
}

func TestWhatAdviceDrainedIsWithinReach(t *testing.T) {
	look := demand.Look{Hosts: []demand.Host{
		{Name: "a", Capacity: 1},
		{Name: "b", Capacity: 2, Draining: true, Advised: true, Silent: true},
		{Name: "c", Capacity: 4, Draining: true, Advised: true}, {Name: "c", Capacity: 4, Draining: true, Advised: true, Silent: true}, // as it was before it began anew
		{Name: "d", Capacity: 8, Draining: true}, {Name: "e", Capacity: 16, Silent: true},
	}}
	if got := look.Reach(); got != 7 {
		t.Errorf("%g are within reach, want 1 + 2 + 4", got)
	}
}

// TestAWorkerThatNeverReturnsIsForgotten: its drain is let go a month after it was
// last heard of, whether it is still known what was last done with it or not, and it is
// not woken in the same minute. One that sleeps for less is woken when it is wanted.
func TestAWorkerThatNeverReturnsIsForgotten(t *testing.T) {
	for _, known := range []bool{true, false} {
		c := newCrew(t, "a", "b")
		c.expect(3, 4, "a drain")
		c.minute += 40 * 24 * 60 // it drains, and is heard of
		c.expect(10, 4)
		c.host("a").Silent = true
		c.expect(4, 4, "a slept")
		if !known {
			c.past, c.host("a").Drained = nil, at(60*c.minute)
		}
		c.minute += 29 * 24 * 60
		c.expect(3, 4)
		c.minute += 24 * 60
		c.expect(1, 100, "a forgotten")
		c.hosts = c.hosts[1:]
		c.expect(5, 100)
	}
	c := newCrew(t, "a", "b")
	c.expect(3, 4, "a drain")
	c.host("a").Silent = true
	c.expect(4, 4, "a slept")
	c.minute += 29 * 24 * 60
	c.expect(1, 8, "a wake")
}

// TestAWorkerThatAStudyCannotDoWithoutIsNotDrained: it would be sought at once, and so
// on for ever. Another one goes in its place.
func TestAWorkerThatAStudyCannotDoWithoutIsNotDrained(t *testing.T) {
	c := newCrew(t, "a", "b")
	c.host("a").Sought = true
	c.host("b").Trials = 2
	c.expect(3, 4, "b drain")
	c.expect(300, 0)
	c.host("a").Sought = false
	c.scaler.Least = 0
	c.expect(3, 0, "a drain")
}
