package approximation

import (
	"encoding/json"
	"math"
	"slices"
)

// Run is one training that a slot was given to, as it was met with.
type Run struct {
	// Began is when, in seconds of any clock that all runs share.
	Began float64 `json:"began"`
	// Waited is how long it could have begun and did not, Seconds how long it then
	// took.
	Waited  float64 `json:"waited"`
	Seconds float64 `json:"seconds"`
	// Sprinted is for how many of the seconds it was sped up, Speed how many times as
	// fast it was then, by its own epochs; 0 where that was not seen.
	Sprinted float64 `json:"sprinted,omitempty"`
	Speed    float64 `json:"speed,omitempty"`

	open bool // it has not ended
}

// came is when the run could have begun.
func (r Run) came() float64     { return r.Began - r.Waited }
func (r Run) waiting() float64  { return r.Waited }
func (r Run) running() float64  { return r.Seconds }
func (r Run) response() float64 { return r.Waited + r.Seconds }

const (
	// mostRuns is how many runs a history keeps, the newest.
	mostRuns = 100
	// span is from how long ago on runs count for how often they come, in seconds.
	span = 3600
)

// tail is the share of responses that a limit of the tail is about.
const tail = 0.95

// History are the newest runs of a study, in the order in which they ended. The
// zero value is empty and ready.
type History struct{ runs []Run }

// Add takes a run in that has ended. Runs that make no sense are left out.
func (h *History) Add(run Run) {
	for _, value := range []float64{run.Began, run.Waited, run.Seconds, run.Sprinted, run.Speed} {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return
		}
	}
	if run.Seconds <= 0 || run.Waited < 0 {
		return
	}
	run.Sprinted = min(max(run.Sprinted, 0), run.Seconds)
	h.runs = append(h.runs, run)
	if len(h.runs) > mostRuns {
		h.runs = slices.Delete(h.runs, 0, len(h.runs)-mostRuns)
	}
}

// MarshalJSON writes the runs, in the order in which they ended.
func (h History) MarshalJSON() ([]byte, error) { return json.Marshal(h.runs) }

// UnmarshalJSON reads what MarshalJSON wrote; runs that make no sense are left out.
func (h *History) UnmarshalJSON(document []byte) error {
	var runs []Run
	if err := json.Unmarshal(document, &runs); err != nil {
		return err
	}
	*h = History{}
	for _, run := range runs {
		h.Add(run)
	}
	return nil
}

// Newest is when the newest run began; 0 where there is none.
func (h History) Newest() float64 {
	newest := 0.0
	for _, run := range h.runs {
		newest = max(newest, run.Began)
	}
	return newest
}

// leastSpeeds is from how many runs on it is known how fast sprints are.
const leastSpeeds = 3

// Speed is how many times as fast runs are while they sprint: the median over those
// that were seen both ways; 1, and not known, before three were. A machine that a
// sprint makes slower is taken for one that it does nothing for.
func (h History) Speed() (speed float64, known bool) {
	var speeds []float64
	for _, run := range h.runs {
		if run.Speed > 0 {
			speeds = append(speeds, run.Speed)
		}
	}
	if len(speeds) < leastSpeeds {
		return 1, false
	}
	slices.Sort(speeds)
	return max(1, speeds[len(speeds)/2]), true
}

// Plain is what its runs took, each as long as it would have without its sprint.
func (h History) Plain() (seconds []float64) {
	speed, _ := h.Speed()
	for _, run := range h.runs {
		seconds = append(seconds, run.Seconds+(speed-1)*run.Sprinted)
	}
	return seconds
}

// Seconds is what runs take in the mean; 0 where there is none.
func (h History) Seconds() float64 {
	sum := 0.0
	for _, run := range h.runs {
		sum += run.Seconds / float64(len(h.runs))
	}
	return sum
}

// Clone is a history of its own with the same runs.
func (h History) Clone() History { return History{slices.Clone(h.runs)} }

// Runs are its runs.
func (h History) Runs() []Run { return h.runs }

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

// Met are the responses of the runs, waiting and running, in seconds: the mean,
// and what 95% are within. Runs is how many they are of.
type Met struct {
	Runs       int
	Mean, Tail float64
}

// met are the responses of a window.
func met(w window) Met {
	if len(w) == 0 {
		return Met{}
	}
	var list []float64
	for _, run := range w {
		list = append(list, run.response())
	}
	slices.Sort(list)
	return Met{Runs: len(list), Mean: w.mean(Run.response), Tail: list[min(len(list)-1, int(tail*float64(len(list))))]}
}

// Responses are those of the runs that ended at a time or later.
func (h History) Responses(since float64) Met {
	return met(slices.DeleteFunc(slices.Clone(h.runs), func(run Run) bool { return run.Began+run.Seconds < since }))
}
