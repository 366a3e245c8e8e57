package demand

import (
	"cmp"
	"fmt"
	"slices"
)

// Host is a worker, as far as waking and draining it goes.
type Host struct {
	ID, Name string
	// Capacity is how many GPUs it has, or how many slots where it has none; GPUs
	// says which.
	Capacity float64
	GPUs     bool
	// Trials is how many it runs.
	Trials int
	// Silent says that it was not heard of for the term of a lease; Draining that
	// it takes no more trials.
	Silent, Draining bool
}

func (h Host) awake() bool { return !h.Silent && !h.Draining }

// Action is what to do with a host.
type Action string

// The actions.
const (
	Keep  Action = "keep"
	Wake  Action = "wake"
	Drain Action = "drain"
)

// Step is what to do with one host, and why.
type Step struct {
	Host   Host
	Action Action
	Reason string
}

// Plan says which hosts to wake or to drain so that as few GPUs as possible, but
// no fewer than wanted, are awake. It drains idle hosts before busy ones, since a
// trial that runs keeps its machine awake until it ends. Hosts that drain are left
// alone. Missing is how many GPUs no other known host has.
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
	asleep := slices.DeleteFunc(slices.Clone(hosts), func(one Host) bool { return one.awake() || one.Draining })
	slices.SortStableFunc(asleep, func(a, b Host) int {
		return cmp.Or(cmp.Compare(b.Capacity, a.Capacity), cmp.Compare(a.Name, b.Name), cmp.Compare(a.ID, b.ID))
	})
	for _, one := range asleep {
		if awake >= wanted {
			break
		}
		chosen[one.ID] = Step{Host: one, Action: Wake, Reason: fmt.Sprintf("it is silent, and %g more are wanted than are awake", wanted-awake)}
		awake += one.Capacity
	}
	return awake
}

// drain chooses who is drained.
func drain(hosts []Host, awake, wanted float64, chosen map[string]Step) {
	candidates := slices.DeleteFunc(slices.Clone(hosts), func(one Host) bool { return !one.awake() || one.Capacity <= 0 })
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
	case one.Draining:
		return "a person drained it, and takes that back"
	case one.Silent:
		return "it is silent, and is not wanted"
	case one.Trials > 0:
		return "it runs trials"
	}
	return "it is wanted"
}
