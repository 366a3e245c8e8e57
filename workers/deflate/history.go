package deflate

import (
	"encoding/json"
	"fmt"
	"math"
	"slices"
)

// Run is one training that a slot was given to, as it was met with.
type Run struct {
	// Began is when, in seconds of any clock that all runs share.
	Began float64 `json:"began"`
	// Waited is how long it could have begun and did not, Seconds how long it then
	// took; Setup is the part of that which does not depend on the data.
	Waited  float64 `json:"waited"`
	Seconds float64 `json:"seconds"`
	Setup   float64 `json:"setup,omitempty"`
	// Drop is the share of its data that was left out.
	Drop float64 `json:"drop,omitempty"`
	// Sprinted is for how many of the seconds it was sped up, Speed how many times as
	// fast it was then, by its own epochs; 0 where that was not seen.
	Sprinted float64 `json:"sprinted,omitempty"`
	Speed    float64 `json:"speed,omitempty"`
}

const (
	// mostRuns is how many runs a history keeps, the newest.
	mostRuns = 200
	// span is from how long ago on runs count for how often they come, in seconds.
	span = 3600
)

// History are the newest runs of a class, in the order in which they ended. The
// zero value is empty and ready.
type History struct{ runs []Run }

// Add takes a run in that has ended. Runs that make no sense are left out.
func (h *History) Add(run Run) {
	for _, value := range []float64{run.Began, run.Waited, run.Seconds, run.Setup, run.Sprinted, run.Speed} {
		if math.IsNaN(value) || math.IsInf(value, 0) {
			return
		}
	}
	if run.Seconds <= 0 || run.Waited < 0 || !(run.Drop >= 0 && run.Drop < 1) {
		return
	}
	run.Setup = min(max(run.Setup, 0), run.Seconds)
	run.Sprinted = min(max(run.Sprinted, 0), run.Seconds-run.Setup)
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

// plain is a history of the same runs without their sprints.
func (h History) plain() History {
	speed, _ := h.Speed()
	plain := h.Clone()
	for i, run := range plain.runs {
		plain.runs[i].Seconds += (speed - 1) * run.Sprinted
		plain.runs[i].Sprinted = 0
	}
	return plain
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

// work is what the run takes of its data, were they all there.
func (r Run) work() float64 { return (r.Seconds - r.Setup) / (1 - r.Drop) }

// serviceOf is what a run takes when a share of its data is left out: the time
// beyond the setup is taken to be in proportion to the data, and to vary as it did
// (equation 4.1 has tasks in its place; a training's time was seen, so that two
// moments are fitted).
func serviceOf(runs []Run, drop float64) (Phases, error) {
	if len(runs) == 0 {
		return Phases{}, fmt.Errorf("no run has ended: what one takes is not known")
	}
	setup, work, square, n := 0.0, 0.0, 0.0, float64(len(runs))
	for _, run := range runs {
		full := run.work()
		setup += run.Setup / n
		work += full / n
		square += (run.Setup + full) * (run.Setup + full) / n
	}
	mean := setup + work
	variation := max(0, square/(mean*mean)-1)
	if len(runs) < leastPairs {
		variation = 1 // too few to tell
	}
	return Fit(setup+work*(1-drop), variation)
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

// Observe fits a process to what came in the last hour, or since all of the
// histories go back where that is less, of classes that have each come in it
// ([History.Rate] is not 0). Classes of which jobs always wait are counted in no
// arrivals; what their jobs take is known as well. How often jobs come is as
// [History.Rate] has it.
//
// Runs that sprinted count as if they had not, as long as it is known how fast
// sprints are ([History.Speed]).
func Observe(met []History, standing []int, now float64) Observed {
	from, histories := now-span, make([]History, len(met))
	for k, history := range met {
		histories[k] = history.plain()
	}
	for k, history := range histories {
		if standing[k] == 0 && len(history.runs) == mostRuns {
			from = max(from, history.runs[0].Began)
		}
	}
	var list []Arrival
	rates, came := make([]float64, len(histories)), make([]int, len(histories))
	for k, history := range histories {
		if standing[k] > 0 {
			continue
		}
		rates[k] = history.Rate(now)
		for _, run := range history.runs {
			if run.Began >= from {
				list = append(list, Arrival{k, run})
				came[k]++
			}
		}
	}
	return observed(histories, list, rates, came)
}

// observed is what was fitted to the arrivals, with these rates; Poisson where a
// class did not come among them.
func observed(histories []History, list []Arrival, rates []float64, came []int) Observed {
	o, places := Observed{Arrivals: Poisson(rates...)}, []int{}
	for k := range histories {
		o.all = append(o.all, histories[k].runs)
		o.runs = append(o.runs, [][]Run{histories[k].runs})
		if rates[k] > 0 {
			places = append(places, k)
		}
	}
	for i, one := range list {
		list[i].Class = slices.Index(places, one.Class)
	}
	if slices.ContainsFunc(places, func(k int) bool { return came[k] == 0 }) {
		return o
	}
	fitted, err := FitArrivals(list, len(places))
	if err != nil || len(fitted.Arrivals.Hidden) == 1 {
		return o // all at once: then how often they come is all that is known
	}
	known := fitted.Arrivals.Rates()
	o.Arrivals = Arrivals{Hidden: fitted.Arrivals.Hidden}
	for k := range histories {
		marked := [][]float64{{0, 0}, {0, 0}}
		if place := slices.Index(places, k); place >= 0 {
			for i := range marked {
				marked[i][i] = fitted.Arrivals.Marked[place][i][i] * rates[k] / known[place]
			}
			o.runs[k] = fitted.runs[place]
		}
		o.Arrivals.Marked = append(o.Arrivals.Marked, marked)
	}
	return o
}
