package deflate

import "math"

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

// Beyond is the mean of how much longer than so many seconds a job takes,
// E[(X − t)⁺], in seconds; jobs that are shorter count as 0.
func (p Phases) Beyond(seconds float64) float64 {
	mean, _ := p.Moments()
	if seconds <= 0 {
		return mean
	}
	// ∫ₜ P(X > x) dx, whose transform follows from that of the density.
	left := invert(func(s complex128) complex128 {
		return (1 - (1-p.transform(s))/(s*complex(mean, 0))) / s
	}, seconds)
	return mean * min(1, max(0, left))
}

// Effective is the speed of jobs that sprint, as a weighted average of the parts
// of their times (section 4.3), and the watts that their sprints take in the long
// run when so many of them come a second. Where the account is replenished by
// less, sprints are shortened in proportion.
func (s Sprint) Effective(p Phases, rate float64, account Account) (speed, watts float64) {
	if s.Speed <= 1 || account.Joules <= 0 {
		return 1, 0
	}
	mean, _ := p.Moments()
	sprinted := p.Beyond(s.TimeoutSeconds) / s.Speed // seconds at the higher speed
	watts = rate * sprinted * s.Watts
	paid := 1.0
	if watts > account.Watts && !math.IsInf(account.Joules, 1) {
		paid = account.Watts / watts
	}
	return mean / (mean - paid*sprinted*(s.Speed-1)), paid * watts
}

// Paid is the sprint with the least timeout whose energy the account is
// replenished by in the long run: the whole budget is used, and the sprints are
// where jobs are longest (section 4.2 asks for both). A sprint that is paid from
// the first second on has none.
func (s Sprint) Paid(p Phases, rate float64, account Account) Sprint {
	takes := func(timeout float64) float64 { return rate * p.Beyond(timeout) / s.Speed * s.Watts }
	if s.Speed <= 1 || math.IsInf(account.Joules, 1) || takes(0) <= account.Watts {
		s.TimeoutSeconds = 0
		return s
	}
	mean, _ := p.Moments()
	low, high := 0.0, mean
	for takes(high) > account.Watts && high < 1e6*mean {
		low, high = high, 2*high
	}
	for range 50 {
		middle := (low + high) / 2
		if takes(middle) > account.Watts {
			low = middle
		} else {
			high = middle
		}
	}
	s.TimeoutSeconds = high
	return s
}
