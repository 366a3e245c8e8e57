package emu

import (
	"slices"
	"time"
)

// Drift is that a setting took something else when it was measured again: the device changed.
type Drift struct {
	At time.Time `json:"at" doc:"when it was found"`
	// Seconds are the median before.
	Seconds float64 `json:"seconds" doc:"the median that was measured before"`
}

// driftedBy is by which factor two medians differ at least that contradict each other: on a
// machine that does other things as well, intervals of 95% part more often than in 5%.
const driftedBy = 1.1

// contradicts reports whether the medians differ, beyond the intervals of both.
func (r Run) contradicts(old Run) bool {
	return (r.Low > old.High || r.High < old.Low) && max(r.Seconds, old.Seconds) > driftedBy*min(r.Seconds, old.Seconds)
}

// leastSeconds is how long each setting is measured at least (emulator.Precision): where the
// machine did other things as well, repetitions of the median are less than that.
const leastSeconds = 0.25

// Took is for how long the setting was measured, with the runs that this one followed.
func (r Run) Took() float64 {
	return r.Repeated + max(r.Seconds*float64(r.Repetitions), leastSeconds)
}

// DriftedAt is when the newest drift of the runs was found; zero: none was.
func DriftedAt(runs []Run) (last time.Time) {
	for _, run := range runs {
		if run.Drift != nil && run.Drift.At.After(last) {
			last = run.Drift.At
		}
	}
	return last
}

// Measured is [Architecture.With] for runs that a device has just made: one that contradicts
// what the setting took before says so. All that contradict measurements from before a drift
// are of that one. To tell the same again changes nothing.
func (a Architecture) Measured(runs []Run) Architecture {
	runs = slices.Clone(runs)
	for i := range runs {
		run := &runs[i]
		run.Drift, run.Repeated, run.First = nil, 0, run.At
		at := slices.IndexFunc(a.Runs, func(old Run) bool { return run.replaces(old) })
		if at < 0 {
			continue
		}
		old := a.Runs[at]
		run.Drift, run.Repeated, run.First = old.Drift, old.Repeated, old.First
		if run.First.IsZero() {
			run.First = old.At // a version before this one wrote it
		}
		if run.Seconds == old.Seconds && run.Low == old.Low && run.High == old.High && run.Repetitions == old.Repetitions {
			continue
		}
		if run.Repeated = old.Took(); run.contradicts(old) {
			run.Drift = &Drift{At: run.At, Seconds: old.Seconds}
			known := DriftedAt(slices.DeleteFunc(slices.Clone(a.Runs), func(one Run) bool { return one.Machine != run.Machine }))
			if old.At.Before(known) {
				run.Drift.At = known
			}
		}
	}
	return a.With(runs)
}

// replaces reports whether the run is of the same setting.
func (r Run) replaces(old Run) bool {
	return r.Machine == old.Machine && r.Batch == old.Batch && r.Threads == old.Threads && r.Provider == old.Provider
}
