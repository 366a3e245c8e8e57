package colocated

import (
	"fmt"
	"slices"
)

// Pair is two trainings that started at once on one machine, and what became of
// them.
type Pair struct {
	Alone    [2]Profile   `json:"alone"`
	Together [2][]Reading `json:"together"`
}

// Reading is what was seen of a training at a time.
type Reading struct {
	// Seconds are since the start. The last reading is when it ended, with a
	// completion of 1.
	Seconds float64 `json:"seconds"`
	// Completion is the share of its work that is done, by when as much was done
	// alone: work that took a tenth of the time alone is a tenth.
	Completion float64 `json:"completion"`
	// Utilization is the share of the machine since the reading before.
	Utilization float64 `json:"utilization"`
}

// Check says what is wrong with the pair.
func (p Pair) Check() error {
	if err := CheckBoth(p.Alone[0], p.Alone[1]); err != nil {
		return err
	}
	for k, list := range p.Together {
		if len(list) == 0 || !(list[len(list)-1].Completion == 1) {
			return fmt.Errorf("the %d readings of training %d do not end with all of its work done", len(list), k)
		}
		for i, one := range list {
			if !(one.Completion >= 0 && one.Completion <= 1 && one.Seconds > 0 && one.Utilization >= 0 && one.Utilization <= 1.05) ||
				i > 0 && (one.Seconds <= list[i-1].Seconds || one.Completion < list[i-1].Completion) {
				return fmt.Errorf("reading %d of training %d is %+v: time and completion grow, and both shares are from 0 to 1", i, k, one)
			}
		}
	}
	return nil
}

// Ended is when a training ended.
func (p Pair) Ended(k int) float64 { return p.Together[k][len(p.Together[k])-1].Seconds }

// At is the completion of a training at a time, between readings on a line, and
// the utilization that was read next.
func (p Pair) At(k int, seconds float64) (completion, utilization float64) {
	list := p.Together[k]
	i, _ := slices.BinarySearchFunc(list, seconds, func(one Reading, at float64) int {
		if one.Seconds < at {
			return -1
		}
		return 1
	})
	if i == len(list) {
		return 1, 0
	}
	before := Reading{}
	if i > 0 {
		before = list[i-1]
	}
	share := (seconds - before.Seconds) / (list[i].Seconds - before.Seconds)
	return before.Completion + share*(list[i].Completion-before.Completion), list[i].Utilization
}

// meanSpeed is how fast a training was while both ran, of its speed alone.
func (p Pair) meanSpeed(k int) float64 {
	both := min(p.Ended(0), p.Ended(1))
	completion, _ := p.At(k, both)
	return max(completion*p.Alone[k].Seconds/both, slowest)
}
