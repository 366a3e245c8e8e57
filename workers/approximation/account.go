package approximation

import (
	"math"
	"slices"
)

// Sprint is how jobs of a class are sped up (section 4.2: the sprinting timeout
// T_k; section 4.4.1: the budget and how it is replenished). The zero value
// does not sprint.
type Sprint struct {
	// TimeoutSeconds is after how long a job that still runs is sped up; 0: at once.
	TimeoutSeconds float64
	// Speed is how many times as fast it is then; up to 1: no sprint.
	Speed float64
	// Watts is how much more a slot takes while its job sprints.
	Watts float64
}

// Account is a budget of energy for sprints: it is full at first, replenished
// all the time, and when it is empty every sprint ends. The zero value allows
// no sprint.
type Account struct {
	// Joules is how much it holds; infinite for sprints without a limit.
	Joules float64
	// Watts is what it is replenished by, up to Joules.
	Watts float64
}

// Takes is how many watts the sprints take in the long run of jobs that take so long
// without one, of which so many come a second.
func (s Sprint) Takes(seconds []float64, rate float64) float64 {
	if s.Speed <= 1 {
		return 0
	}
	beyond := 0.0
	for _, one := range seconds {
		beyond += max(0, one-s.TimeoutSeconds) / float64(len(seconds))
	}
	return rate * beyond / s.Speed * s.Watts
}

// Paid is the sprint with the least timeout whose energy the account is
// replenished by in the long run: the whole budget is used, and the sprints are
// where jobs are longest (section 4.2 asks for both). A sprint that is paid from
// the first second on has none.
func (s Sprint) Paid(seconds []float64, rate float64, account Account) Sprint {
	s.TimeoutSeconds = 0
	if len(seconds) == 0 || math.IsInf(account.Joules, 1) || s.Takes(seconds, rate) <= account.Watts {
		return s
	}
	low, high := 0.0, slices.Max(seconds)
	for range 50 {
		s.TimeoutSeconds = (low + high) / 2
		if s.Takes(seconds, rate) > account.Watts {
			low = s.TimeoutSeconds
		} else {
			high = s.TimeoutSeconds
		}
	}
	s.TimeoutSeconds = high
	return s
}
