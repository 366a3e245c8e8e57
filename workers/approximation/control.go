package approximation

import (
	"math"
	"slices"
)

// Limits are how long trainings of a study may take, waiting and running, in
// seconds; 0: no limit. Tail is for 95% of them.
type Limits struct{ Mean, Tail float64 }

// Observations are what a study with limits met with, and who is in its way.
type Observations struct {
	Now    float64
	Limits Limits
	// Ended are its trainings in the order in which they ended; Open are those that
	// run, and the one that waits (its Seconds are 0), with what they took so far.
	Ended, Open []Run
	// Most is the largest share that any study of a lower priority allows to leave
	// out which runs on the same workers.
	Most float64
	// Below is how many trainings of these studies run on such workers, Oldest when
	// the first of them began.
	Below  int
	Oldest float64
}

// State is what is remembered of a study with limits. The zero value leaves
// nothing out.
type State struct {
	// Share is what is left out for the study, Changed since when.
	Share   float64 `json:"share,omitempty"`
	Changed float64 `json:"changed,omitempty"`
	// Settling says that trainings still run which began before. From is when the
	// window began: what came earlier says nothing of Share.
	Settling bool    `json:"settling,omitempty"`
	From     float64 `json:"from,omitempty"`
	// Waited is the mean wait before anything was left out.
	Waited float64 `json:"waited,omitempty"`
	// Until is when it is tried again after it did not help, Rest how long that was.
	Until float64 `json:"until,omitempty"`
	Rest  float64 `json:"rest,omitempty"`
}

// Verdict is why a share is as it is.
type Verdict int

// The verdicts. From Raised on a limit is broken.
const (
	// Kept: the limits are kept, or nothing says that they are not.
	Kept Verdict = iota
	// Near: too few trainings ended to tell, or they are too near a limit.
	Near
	// Settling: trainings still run that began before the last step.
	Settling
	// Lowered: there was room for a step down.
	Lowered
	// Raised: a step up was taken.
	Raised
	// Deepest: no more may be left out, and it helps.
	Deepest
	// Nobody: no study leaves data out that runs on the same workers.
	Nobody
	// Alone: the study's trainings take longer than that without any waiting.
	Alone
	// Useless: leaving data out brought no shorter waiting.
	Useless
)

// Decision is what a controller decided, and what that was decided on.
type Decision struct {
	Share   float64
	Verdict Verdict
	Met     Met
}

const (
	// Step is by how much the share changes at a time.
	Step = 0.1
	// fewest is from how many trainings on a limit counts as broken: fewer are
	// filled up with some that took no time. For a step down it takes twice as many.
	fewest = 5
	// hysteresis is the part of a limit that is kept free before a step down.
	hysteresis = 0.2
	// judged is from which share on it is looked whether it helped.
	judged = 0.3
)

// NextShare is the controller: what follows from the state and what was met since. It is
// to be asked every few seconds; a step is taken at most once in a window.
func NextShare(s State, o Observations) (State, Decision) {
	verdict := Near
	if o.Most > 0 && s.Share > o.Most { // with nobody there for a moment it is kept
		s.move(o.Most, o.Now)
	}
	if s.Settling && (o.Below == 0 || o.Oldest >= s.Changed || o.Now >= s.Changed+o.age()) {
		s.Settling, s.From = false, o.Now
	}
	if s.Settling {
		verdict = Settling
	} else if w := o.window(s.From); w.broken(o.Limits, Run.response, 1) {
		verdict = s.raise(w, o)
	} else if w.room(o, s.From) {
		verdict = s.lower(o)
	}
	return s, Decision{min(s.Share, o.Most), verdict, met(o.window(o.Now - o.age()))}
}

// move puts another share into force.
func (s *State) move(share, now float64) {
	s.Share, s.Changed, s.Settling, s.From = math.Round(1e6*share)/1e6, now, true, now
}

// raise is what to do as a limit is broken.
func (s *State) raise(w window, o Observations) Verdict {
	switch {
	case window(o.Ended).broken(o.Limits, Run.running, 1):
		s.giveUp(o.Now, 0)
		return Alone
	case o.Below == 0:
		return Nobody
	case o.Now < s.Until:
		return Useless
	case s.Share == 0:
		s.Waited = w.mean(Run.waiting)
	case s.Share >= min(judged, o.Most):
		if len(w) < 2*fewest && o.Now-s.From < o.span() {
			return Near
		}
		if w.mean(Run.waiting) > s.Waited*(1-s.Share) {
			s.Rest = min(max(2*s.Rest, 2*o.span()), 32*o.span())
			s.giveUp(o.Now, s.Rest)
			return Useless
		}
	}
	if s.Share >= o.Most {
		return Deepest
	}
	s.move(min(s.Share+Step, o.Most), o.Now)
	return Raised
}

// giveUp leaves nothing out for so long.
func (s *State) giveUp(now, rest float64) {
	s.Until = now + rest
	if s.Share > 0 {
		s.move(0, now)
	}
}

// lower is what to do as there is room below the limits.
func (s *State) lower(o Observations) Verdict {
	if s.Share == 0 && s.Rest == 0 {
		return Kept
	}
	s.From = o.Now
	if s.Share == 0 {
		if s.Rest /= 2; s.Rest < o.span() {
			s.Rest = 0
		}
		return Kept
	}
	s.move(max(0, s.Share-Step), o.Now)
	return Lowered
}

// widest is the larger of the limits.
func (l Limits) widest() float64 { return max(l.Mean, l.Tail) }

// span is after how long a window ends in which hardly anything came, in seconds:
// in that time trainings one after the other would have been enough.
func (o Observations) span() float64 { return max(600, fewest*o.Limits.widest()) }

// age is for how long what was met counts.
func (o Observations) age() float64 { return max(3600, 20*o.Limits.widest()) }

// window are trainings, ended or not.
type window []Run

// window are the newest trainings that came since, and as long ago as counts. One
// that has not ended is among them once it has taken longer than those that have in
// the mean: it counts with at least what it took so far. The one that waits stands
// for those behind it: it counts as often as the limit fits into its wait.
func (o Observations) window(from float64) window {
	var w window
	for _, run := range o.Ended {
		if run.came() >= from && run.Began+run.Seconds >= o.Now-o.age() {
			w = append(w, run)
		}
	}
	mean := w.mean(Run.response)
	limit := least(o.Limits.Mean, o.Limits.Tail)
	for _, run := range o.Open {
		if run.came() < from || run.response() <= mean {
			continue
		}
		run.open = true
		times := 1
		if run.Seconds == 0 {
			times = min(max(1, int(run.Waited/limit)), fewest)
		}
		w = append(w, slices.Repeat(window{run}, times)...)
	}
	return w[max(0, len(w)-mostRuns):]
}

// least is the smaller of two limits, of which 0 is none.
func least(a, b float64) float64 {
	if a == 0 || b == 0 {
		return max(a, b)
	}
	return min(a, b)
}

// ended are those of them that have.
func (w window) ended() window {
	return slices.DeleteFunc(slices.Clone(w), func(run Run) bool { return run.open })
}

// mean is that of a part of their time; 0 where there is none.
func (w window) mean(part func(Run) float64) float64 {
	sum := 0.0
	for _, run := range w {
		sum += part(run) / float64(len(w))
	}
	return sum
}

// error is the standard error of the mean over so many of them, of which those that
// are missing took no time.
func (w window) error(part func(Run) float64, mean float64, n float64) float64 {
	squares := (n - float64(len(w))) * mean * mean
	for _, run := range w {
		squares += (part(run) - mean) * (part(run) - mean)
	}
	return math.Sqrt(squares / (n - 1) / n)
}

// broken reports whether a part of their time breaks a limit: the mean by more than
// so many of its standard errors, or of the tail so many that it would happen once
// in ten times at most were the limit just kept.
func (w window) broken(limits Limits, part func(Run) float64, errors float64) bool {
	n := float64(max(len(w), fewest))
	mean := w.mean(part) * float64(len(w)) / n
	if limits.Mean > 0 && mean-errors*w.error(part, mean, n) > limits.Mean {
		return true
	}
	return limits.Tail > 0 && chance(w.over(limits.Tail, part), int(n)) <= 0.1
}

// over is how many of them are over a limit of the tail.
func (w window) over(limit float64, part func(Run) float64) (over int) {
	for _, run := range w {
		if part(run) > limit {
			over++
		}
	}
	return over
}

// chance is the probability that so many of n or more are over a limit that 95% are
// within.
func chance(over, n int) float64 {
	fewer, term := 0.0, math.Pow(tail, float64(n))
	for k := range over {
		fewer += term
		term *= float64(n-k) / float64(k+1) * (1 - tail) / tail
	}
	return 1 - fewer
}

// room reports whether the limits were kept with so much to spare that a step down
// may be tried, of enough trainings or over a long enough time, and none waits for
// long, since whenever.
func (w window) room(o Observations, from float64) bool {
	n, most := float64(len(w)), (1-hysteresis)*least(o.Limits.Mean, o.Limits.Tail)
	if len(w.ended()) < 2*fewest && o.Now-from < o.age() || slices.ContainsFunc(o.Open, func(run Run) bool { return run.Waited > most }) {
		return false
	}
	mean := w.mean(Run.response)
	if n > 1 {
		mean += w.error(Run.response, mean, n)
	}
	return (o.Limits.Mean == 0 || mean <= (1-hysteresis)*o.Limits.Mean) &&
		(o.Limits.Tail == 0 || float64(w.over((1-hysteresis)*o.Limits.Tail, Run.response)) <= (1-tail)*n)
}
