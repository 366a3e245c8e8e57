package demand

import (
	"fmt"
	"math"
	"slices"
	"time"
)

// Further actions of a [Change]: what was seen of workers that a scaler drained.
const (
	// Slept: a worker that it drained is not heard of any more.
	Slept Action = "slept"
	// Woke: one that was silent is heard of again.
	Woke Action = "woke"
	// Taken: a person took the drain back.
	Taken Action = "taken back"
	// Forgotten: one that it drained was silent for so long that it is not expected any
	// more; its drain is let go.
	Forgotten Action = "forgotten"
)

// Change is what a scaler did, or saw of what it had done.
type Change struct {
	At     time.Time `json:"at"`
	Worker string    `json:"worker"`
	Holder string    `json:"holder,omitempty"`
	// Action is [Drain], [Wake] (the drain is taken back), or what was seen.
	Action Action `json:"action"`
	Reason string `json:"reason"`
	// Capacity is the worker's, in GPUs, or in slots where it has none.
	Capacity float64 `json:"capacity"`
	// Asleep says of a wake that the worker was silent: somebody has to wake its
	// machine.
	Asleep bool `json:"asleep,omitempty"`
	// Drained says of one that woke that it still drains by advice.
	Drained bool `json:"drained,omitempty"`
	// Pretended says that nothing was done: it would have been.
	Pretended bool `json:"pretended,omitempty"`
}

// Scaler decides which workers a server drains by itself, so that as few GPUs as
// possible, but enough, take trials, and which of these drains it takes back:
// action on the advice of CUFF's knob (Mammen and others, 2023, section 3.3).
// It never touches a drain of a person, and what it drains ends its trials.
type Scaler struct {
	// Least and Most bound how many GPUs take trials, whatever is forecast; a Most
	// of 0 is none.
	Least, Most float64
	// Pace is for drains. A drain is taken back as soon as the worker is wanted.
	// Its Steady is also how many times in a row a drained worker is silent before
	// it counts as asleep.
	Pace Pace
	// Delay is how long a machine takes to wake up.
	Delay time.Duration
	// Pretend decides as if earlier decisions had been carried out, and marks all
	// as pretended.
	Pretend bool

	blind  int
	silent map[string]int
}

// waking is how much longer than the delay a machine may take until it counts as
// silent again.
const waking = 2 * time.Minute

// blinded is how many times in a row nothing may be known of what is wanted before all
// drains are taken back: a server that starts again needs a few minutes.
const blinded = 5

// respected is how long a worker is not drained after a person took its drain back.
const respected = 24 * time.Hour

// expected is how long a drained worker may be silent until its drain is let go. If
// it comes all the same, it is drained again, unless it is wanted.
const expected = 30 * 24 * time.Hour

// Situation is what a scaler decides about.
type Situation struct {
	Hosts []Host
	// Wanted is how many GPUs should take trials. Unknown is why nobody can say;
	// empty where it is known.
	Wanted  float64
	Unknown string
	// Past is what was done and seen before, the oldest first.
	Past []Change
}

// Decide says what to do now, and what was seen of what was done. It is called
// about once a minute.
func (s *Scaler) Decide(now time.Time, situation Situation) []Change {
	last := make(map[string]Change)
	for _, one := range situation.Past {
		if one.Pretended == s.Pretend {
			last[keyOf(one.Worker, one.Holder)] = one
		}
	}
	hosts := grouped(situation.Hosts)
	var changes []Change
	note := func(one Host, action Action, reason string) {
		change := Change{At: now.UTC(), Worker: one.Name, Holder: one.Holder, Action: action, Reason: reason, Capacity: one.Capacity, Pretended: s.Pretend}
		change.Asleep, change.Drained = action == Wake && one.Silent, action == Woke && one.Advised
		changes = append(changes, change)
	}
	if s.Pretend {
		for i, one := range hosts {
			if last[one.ID].Action == Drain && !one.Draining {
				hosts[i].Draining, hosts[i].Advised = true, true
			}
		}
	} else {
		s.watch(hosts, last, note)
		hosts = slices.DeleteFunc(hosts, func(one Host) bool {
			if !gone(now, one, last[one.ID]) {
				return false
			}
			note(one, Forgotten, fmt.Sprintf("it was not heard of for %g days: its drain is let go", expected.Hours()/24))
			return true
		})
	}
	wanted, why, known := s.aim(situation)
	if !known {
		return changes
	}
	s.remember(now, hosts, last)
	hosts = slices.DeleteFunc(hosts, func(one Host) bool { return one.Silent && !one.Advised }) // nobody here wakes machines
	for i, one := range hosts {
		hosts[i].Spared = one.Spared || one.Sought && one.awake()
	}
	steps, _ := Plan(hosts, wanted)
	for i, step := range steps {
		switch {
		case step.Action == Wake:
			note(step.Host, Wake, "it is wanted: "+why)
		case step.Host.Sought && step.Host.Advised:
			note(step.Host, Wake, "trials wait that no worker which takes trials can run")
		}
		if step.Action != Drain || step.Host.Sought {
			steps[i].Action = Keep
		}
	}
	for _, step := range s.Pace.Due(now, steps) {
		note(step.Host, Drain, step.Reason+": "+why)
	}
	return changes
}

// gone reports whether a drained worker is not expected any more: it was seen to
// sleep, or so much has happened since that nobody knows what was last done.
func gone(now time.Time, one Host, last Change) bool {
	since := one.Drained
	if last.At.After(since) {
		since = last.At
	}
	return one.Silent && one.Advised && (last.Action == Slept || last.Action == "") && now.Sub(since) >= expected
}

// remember notes which hosts are on their way, and which are to be left alone, also
// by a scaler that was made since.
func (s *Scaler) remember(now time.Time, hosts []Host, last map[string]Change) {
	for i, one := range hosts {
		switch before := last[one.ID]; before.Action {
		case Drain:
			s.Pace.Acted(one.ID, before.At)
		case Wake:
			if before.Asleep && one.Silent && now.Sub(before.At) < s.Delay+waking {
				hosts[i].Silent = false
			}
			s.Pace.Acted(one.ID, before.At)
		case Woke:
			s.Pace.Acted(one.ID, before.At)
		case Taken:
			hosts[i].Spared = now.Sub(before.At) < respected
		}
	}
}

// aim is how many GPUs should take trials, and why. Nothing is to be done while it
// is not known.
func (s *Scaler) aim(situation Situation) (wanted float64, why string, known bool) {
	wanted, why, known = situation.Wanted, fmt.Sprintf("%g should be awake (an estimate)", situation.Wanted), true
	if situation.Unknown == "" {
		s.blind = 0
	} else {
		s.blind++
		wanted, why, known = math.Inf(1), "nobody can say how many should be awake ("+situation.Unknown+")", s.blind >= blinded
	}
	if s.Most > 0 && wanted > s.Most {
		wanted, why = s.Most, fmt.Sprintf("%s, and at most %g may be", why, s.Most)
	}
	if wanted < s.Least {
		wanted, why = s.Least, fmt.Sprintf("%s, and at least %g are to be", why, s.Least)
	}
	return wanted, why, known
}

// watch notes what became of what was done.
func (s *Scaler) watch(hosts []Host, last map[string]Change, note func(Host, Action, string)) {
	before := s.silent
	s.silent = make(map[string]int)
	for i, one := range hosts {
		done, some := last[one.ID]
		if !some {
			continue
		}
		switch {
		case (done.Action == Drain || done.Action == Slept || done.Drained) && !one.Draining:
			hosts[i].Spared = true
			note(one, Taken, "a person took the drain back: it is left alone for a day")
		case one.Silent && one.Advised && done.Action != Slept:
			if s.silent[one.ID] = before[one.ID] + 1; s.silent[one.ID] >= s.Pace.Steady {
				note(one, Slept, "it is not heard of any more: its machine sleeps, or is off")
			}
		case !one.Silent && (done.Action == Slept || done.Action == Wake && done.Asleep):
			note(one, Woke, "it is heard of again")
		}
	}
}

// grouped makes one host of those that are drained together; its id is theirs. Of
// several, those that are silent count only where all are.
func grouped(hosts []Host) []Host {
	var groups []Host
	places := make(map[string]int)
	for _, one := range hosts {
		one.ID = keyOf(one.Name, one.Holder)
		at, known := places[one.ID]
		if !known {
			places[one.ID] = len(groups)
			groups = append(groups, one)
			continue
		}
		group := &groups[at]
		group.Trials += one.Trials
		group.Sought = group.Sought || one.Sought
		switch {
		case group.Silent == one.Silent:
			group.Capacity += one.Capacity
		case group.Silent:
			group.Capacity, group.Silent = one.Capacity, false
		}
	}
	return groups
}

func keyOf(name, holder string) string { return holder + "\x00" + name }
