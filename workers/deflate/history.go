package deflate

import (
	"fmt"
	"slices"
)

// Run is one training that a slot was given to, as it was met with.
type Run struct {
	// Began is when, in seconds of any clock that all runs share.
	Began float64
	// Waited is how long it could have begun and did not, Seconds how long it then
	// took; Setup is the part of that which does not depend on the data.
	Waited, Seconds, Setup float64
	// Drop is the share of its data that was left out.
	Drop float64
}

const (
	// mostRuns is how many runs a history keeps, the newest.
	mostRuns = 200
	// span is from how long ago on runs count for how often they come, in seconds.
	span = 3600
)

// History are the newest runs of a class. The zero value is empty and ready.
type History struct{ runs []Run }

// Add takes a run in that has ended. Runs that make no sense are left out.
func (h *History) Add(run Run) {
	if !(run.Seconds > 0) || !(run.Waited >= 0) || !(run.Drop >= 0 && run.Drop < 1) {
		return
	}
	run.Setup = min(max(run.Setup, 0), run.Seconds)
	h.runs = append(h.runs, run)
	if len(h.runs) > mostRuns {
		h.runs = slices.Delete(h.runs, 0, len(h.runs)-mostRuns)
	}
}

// Clone is a history of its own with the same runs.
func (h History) Clone() History { return History{slices.Clone(h.runs)} }

// Len is how many runs it has.
func (h History) Len() int { return len(h.runs) }

// Rate is how many began a second in the last hour, or since the first that is
// known if that is less.
func (h History) Rate(now float64) float64 {
	count, first := 0, now
	for _, run := range h.runs {
		if run.Began > now-span {
			count++
			first = min(first, run.Began)
		}
	}
	if count == 0 {
		return 0
	}
	return float64(count) / max(now-first, h.runs[len(h.runs)-1].Seconds)
}

// Service is what a run takes when a share of its data is left out and it is so
// many times as fast: the time beyond the setup is taken to be in proportion to
// the data, and to vary as it did (equation 4.1 has tasks in its place; a
// training's time was seen, so that two moments are fitted).
func (h History) Service(drop, speed float64) (Phases, error) {
	if len(h.runs) == 0 {
		return Phases{}, fmt.Errorf("no run has ended: what one takes is not known")
	}
	setup, work, square, n := 0.0, 0.0, 0.0, float64(len(h.runs))
	for _, run := range h.runs {
		full := (run.Seconds - run.Setup) / (1 - run.Drop)
		setup += run.Setup / n
		work += full / n
		square += (run.Setup + full) * (run.Setup + full) / n
	}
	mean := setup + work
	variation := max(0, square/(mean*mean)-1)
	if len(h.runs) < leastPairs {
		variation = 1 // too few to tell
	}
	p, err := Fit(setup+work*(1-drop), variation)
	if err != nil {
		return p, err
	}
	return p.Sprinted(speed), nil
}

// Met are the responses of the runs, waiting and running, in seconds: the mean,
// and what 95% are within. Runs is how many they are of.
type Met struct {
	Runs       int
	Mean, Tail float64
}

// Responses are those of the runs that began at a time or later.
func (h History) Responses(since float64) Met {
	var list []float64
	for _, run := range h.runs {
		if run.Began >= since {
			list = append(list, run.Waited+run.Seconds)
		}
	}
	if len(list) == 0 {
		return Met{}
	}
	slices.Sort(list)
	met := Met{Runs: len(list), Tail: list[min(len(list)-1, int(tail*float64(len(list))))]}
	for _, one := range list {
		met.Mean += one / float64(len(list))
	}
	return met
}
