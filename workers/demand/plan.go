package demand

import (
	"cmp"
	"fmt"
	"slices"
	"time"
)

// Host is a worker, as far as waking and draining it goes.
type Host struct {
	ID, Name string
	// Holder is whom it belongs to: workers of one name and holder are drained
	// together.
	Holder string
	// Capacity is how many GPUs it has, or how many slots where it has none; GPUs
	// says which.
	Capacity float64
	GPUs     bool
	// Trials is how many it runs.
	Trials int
	// Silent says that it was not heard of for the term of a lease; Draining that
	// it takes no more trials.
	Silent, Draining bool
	// Advised says that it drains by advice, which may take that back. A drain by a
	// person is left alone.
	Advised bool
	// Sought says that trials wait which no worker that takes trials can run, and
	// this one could; or, of one that takes trials, that a study which has work can
	// use no other that does.
	Sought bool
	// Drained is since when advice drains it; zero where it does not.
	Drained time.Time
	// Spared says that it is not to be drained: a person wants it awake.
	Spared bool
}

func (h Host) awake() bool { return !h.Silent && !h.Draining }

// wakeable reports whether advice may have it take trials again.
func (h Host) wakeable() bool { return !h.awake() && (h.Advised || !h.Draining) }

// Action is what to do with a host.
type Action string

// The actions.
const (
	Keep  Action = "keep"
	Wake  Action = "wake"
	Drain Action = "drain"
	// Sleep is for the machine of a host that drains by advice and has ended its
	// trials.
	Sleep Action = "sleep"
)

// Step is what to do with one host, and why.
type Step struct {
	Host   Host
	Action Action
	Reason string
}

// Plan says which hosts to wake or to drain so that as few GPUs as possible, but
// no fewer than wanted, are awake. It drains idle hosts before busy ones, since a
// trial that runs keeps its machine awake until it ends, and wakes hosts that
// drain before silent ones. Hosts that a person drained are left alone. Missing is
// how many GPUs no other known host has: machines that said goodbye are known only
// where advice had drained them.
func Plan(hosts []Host, wanted float64) (steps []Step, missing float64) {
	awake := Look{Hosts: hosts}.Capacity()
	chosen := make(map[string]Step)
	switch {
	case awake < wanted:
		awake = wake(hosts, awake, wanted, chosen)
	case awake > wanted:
		drain(hosts, awake, wanted, chosen)
	}
	for _, one := range hosts {
		step, changes := chosen[one.ID]
		if !changes {
			step = Step{Host: one, Action: Keep, Reason: stays(one)}
			if one.Advised && !one.Silent && one.Trials == 0 {
				step.Action, step.Reason = Sleep, "it drains, has ended its trials, and is not wanted"
			}
		}
		steps = append(steps, step)
	}
	slices.SortStableFunc(steps, func(a, b Step) int {
		return cmp.Or(cmp.Compare(a.Host.Name, b.Host.Name), cmp.Compare(a.Host.ID, b.Host.ID))
	})
	return steps, max(0, wanted-awake)
}

// wake chooses who is woken, and returns what is awake then.
func wake(hosts []Host, awake, wanted float64, chosen map[string]Step) float64 {
	asleep := slices.DeleteFunc(slices.Clone(hosts), func(one Host) bool { return !one.wakeable() })
	slices.SortStableFunc(asleep, func(a, b Host) int {
		return cmp.Or(order(a.Silent, b.Silent), cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, one := range asleep {
		if awake >= wanted {
			break
		}
		why := "it drains"
		if one.Silent {
			why = "it is silent"
		}
		chosen[one.ID] = Step{Host: one, Action: Wake, Reason: fmt.Sprintf("%s, and %g more are wanted than are awake", why, wanted-awake)}
		awake += one.Capacity
	}
	return awake
}

// drain chooses who is drained.
func drain(hosts []Host, awake, wanted float64, chosen map[string]Step) {
	candidates := slices.DeleteFunc(slices.Clone(hosts), func(one Host) bool { return !one.awake() || one.Spared || one.Capacity <= 0 })
	slices.SortStableFunc(candidates, func(a, b Host) int {
		return cmp.Or(cmp.Compare(a.Trials, b.Trials), cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, one := range candidates {
		if awake-one.Capacity < wanted {
			continue
		}
		why := "it runs nothing"
		if one.Trials > 0 {
			why = fmt.Sprintf("it runs the fewest trials (%d), which end first", one.Trials)
		}
		chosen[one.ID] = Step{Host: one, Action: Drain, Reason: fmt.Sprintf("%s, and %g fewer are wanted than are awake", why, awake-wanted)}
		awake -= one.Capacity
	}
}

// stays says why a host is left as it is.
func stays(one Host) string {
	switch {
	case one.Draining && !one.Advised:
		return "a person drained it, and takes that back"
	case one.Silent && one.Draining:
		return "it sleeps, and is not wanted"
	case one.Silent:
		return "it is silent, and is not wanted"
	case one.Draining:
		return "it drains, and is not wanted"
	case one.Spared:
		return "a person took its drain back"
	case one.Trials > 0:
		return "it runs trials"
	}
	return "it is wanted"
}

// order puts false before true.
func order(a, b bool) int {
	switch {
	case a == b:
		return 0
	case b:
		return -1
	}
	return 1
}
