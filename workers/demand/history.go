package demand

import (
	"slices"
	"time"
)

const (
	// Kept is how long minutes are kept.
	Kept = 28 * 24 * time.Hour
	// Bridged is how long a gap may be for the demand before it to stand for it:
	// leases outlive a restart of the server.
	Bridged = 15 * time.Minute
)

// History is the minutes of the last weeks, in order of time. The zero value is
// empty and ready.
type History struct {
	minutes []Minute
}

// Add appends a minute, and lets go of those that are older than [Kept] by then.
// One that is not later than the newest is left out: it reports false.
func (h *History) Add(one Minute) bool {
	if newest, some := h.Newest(); some && !one.At.After(newest.At) {
		return false
	}
	h.minutes = append(h.minutes, one)
	first := h.from(one.At.Add(-Kept))
	if first > len(h.minutes)/8 { // seldom, since the rest is copied
		h.minutes = slices.Clone(h.minutes[first:])
	}
	return true
}

// Newest is the last minute.
func (h *History) Newest() (Minute, bool) {
	if len(h.minutes) == 0 {
		return Minute{}, false
	}
	return h.minutes[len(h.minutes)-1], true
}

// from is the place of the first minute that is not before the time.
func (h *History) from(at time.Time) int {
	place, _ := slices.BinarySearchFunc(h.minutes, at, func(one Minute, at time.Time) int { return one.At.Compare(at) })
	return place
}

// Since are the minutes from the time on. They are shared: who reads them changes
// nothing.
func (h *History) Since(at time.Time) []Minute { return h.minutes[h.from(at):] }

// Of makes of the minutes those of one owner: what it wanted, and what there
// was. What was told of all is not there.
func Of(minutes []Minute, owner string) []Minute {
	own := make([]Minute, len(minutes))
	for i, one := range minutes {
		own[i] = Minute{At: one.At, Want: one.Owners[owner], Capacity: one.Capacity}
	}
	return own
}

// Gap is a time in which nobody looked.
type Gap struct {
	// Begin is the first minute that is missing, End the first behind it.
	Begin, End time.Time
}

// Gaps are those between the minutes.
func Gaps(minutes []Minute) []Gap {
	var gaps []Gap
	for i := 1; i < len(minutes); i++ {
		if begin := minutes[i-1].At.Add(time.Minute); minutes[i].At.After(begin) {
			gaps = append(gaps, Gap{Begin: begin, End: minutes[i].At})
		}
	}
	return gaps
}

// Series is the demand of the newest stretch of minutes, a value for each, in
// GPUs: back to the last gap that is longer than [Bridged]. In a shorter one the
// demand before it stands for what nobody saw; bridged counts such minutes.
func Series(minutes []Minute) (series []float64, bridged int) {
	first := len(minutes)
	for first > 0 && (first == len(minutes) || minutes[first].At.Sub(minutes[first-1].At) <= Bridged+time.Minute) {
		first--
	}
	for i := first; i < len(minutes); i++ {
		if i > first {
			for at := minutes[i-1].At.Add(time.Minute); at.Before(minutes[i].At); at = at.Add(time.Minute) {
				series = append(series, minutes[i-1].Total())
				bridged++
			}
		}
		series = append(series, minutes[i].Total())
	}
	return series, bridged
}

// MostCapacity is the most GPUs that were there in one of the minutes.
func MostCapacity(minutes []Minute) float64 {
	most := 0.0
	for _, one := range minutes {
		most = max(most, one.Capacity)
	}
	return most
}
