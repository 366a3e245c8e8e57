package trial

import (
	"fmt"
	"maps"
	"slices"
)

// Bounds of a profile.
const (
	MaxProfileValues = 128 // of events and of host metrics together
	maxProfileName   = 64  // bytes
)

// Profile is what the processes of a trial did during one epoch, and what the
// machine did meanwhile (Rocha, section 6.3.3). What could not be measured is
// not in it: an absent event is not one that did not happen.
type Profile struct {
	// Level is how much could be counted, in words: "user and kernel mode",
	// "user mode only" or "host metrics only".
	Level string `json:"level" maxLength:"64"`
	// Events holds how often each event happened per second of the epoch,
	// summed over threads, by the names perf has for them.
	Events map[string]Float `json:"events,omitempty" maxProperties:"128" doc:"per second, by event"`
	// Host holds metrics of the process tree ("tree."), of the machine
	// ("machine.") and of the GPUs it may use ("gpu."): per second for what adds up, the mean for what is a state.
	Host map[string]Float `json:"host,omitempty" maxProperties:"128" doc:"per second, or the mean of a state, by metric"`
	// RunFraction is the smallest part of the time in which an event really
	// had a counter, when that is below 1: then values were scaled up, and are
	// estimates.
	RunFraction Float `json:"run_fraction,omitempty" minimum:"0" maximum:"1"`
}

// Faults says what is wrong with a profile, in the order of its names.
func (p Profile) Faults() []string {
	var faults []string
	if n := len(p.Events) + len(p.Host); n > MaxProfileValues {
		faults = append(faults, fmt.Sprintf("has %d values, at most %d", n, MaxProfileValues))
	}
	for _, values := range []map[string]Float{p.Events, p.Host} {
		for _, name := range slices.Sorted(maps.Keys(values)) {
			if value := values[name]; name == "" || len(name) > maxProfileName || !value.IsFinite() || value < 0 {
				faults = append(faults, fmt.Sprintf("%.70q: %v: a name has 1 to %d bytes, a value is a number of at least 0", name, float64(value), maxProfileName))
			}
		}
	}
	if !(p.RunFraction >= 0 && p.RunFraction <= 1) {
		faults = append(faults, "the run fraction is from 0 to 1")
	}
	return faults
}
