package colocated

import (
	"fmt"
	"math"
)

// Point is what a training uses in a slice of its time.
type Point struct {
	// Utilization is the share of the machine (a GPU, or its cores) that it keeps
	// busy, from 0 to 1.
	Utilization float64 `json:"utilization"`
	MemoryBytes float64 `json:"memory_bytes"`
	// StepsASecond is how fast it works, in steps of its own.
	StepsASecond float64 `json:"steps_a_second"`
}

// Profile is a training that ran alone: how long, and what it used in each of
// equally long slices of that.
type Profile struct {
	Seconds float64 `json:"seconds"`
	Points  []Point `json:"points"`
}

// At is the profile where a share of the work is done.
func (p Profile) At(completion float64) Point {
	return p.Points[min(int(completion*float64(len(p.Points))), len(p.Points)-1)]
}

// mean is what the training uses in the mean.
func (p Profile) mean() (m use) {
	n := float64(len(p.Points))
	for _, one := range p.Points {
		m.Utilization += one.Utilization / n
		m.MemoryBytes += one.MemoryBytes / n
	}
	return m
}

func (p Profile) check() error {
	if !(p.Seconds > 0) || math.IsInf(p.Seconds, 0) || len(p.Points) == 0 {
		return fmt.Errorf("a profile of %d points in %g s: it needs both", len(p.Points), p.Seconds)
	}
	for i, one := range p.Points {
		if !(one.Utilization >= 0 && one.Utilization <= 1.05 && one.MemoryBytes >= 0 && one.StepsASecond >= 0) ||
			math.IsInf(one.MemoryBytes, 0) || math.IsInf(one.StepsASecond, 0) {
			return fmt.Errorf("point %d of a profile is %+v: the utilization is a share, and nothing is negative or infinite", i, one)
		}
	}
	return nil
}

// Outcome is what becomes of one of the two.
type Outcome struct {
	// Seconds is when it ends, Alone when it would have by itself, both from the
	// start.
	Seconds, Alone float64
	// Completion and Utilization are at the end of each period of the
	// [Colocation]: the share of its work that is done, and of the machine that it
	// kept busy in the period.
	Completion, Utilization []float64
}

// Slowdown is how much longer it takes, in parts of what it takes alone (Yeung
// and others, 2020, footnote 10): 0 for nothing, 1 for twice the time.
func (o Outcome) Slowdown() float64 { return o.Seconds/o.Alone - 1 }

// Colocation is two trainings that start at once on one machine.
type Colocation struct {
	// Period is the seconds between the points of the outcomes.
	Period float64
	Jobs   [2]Outcome
}

// Gain is how much sooner both are done than one after the other, as a factor:
// below 1, sharing loses.
func (c Colocation) Gain() float64 {
	return (c.Jobs[0].Alone + c.Jobs[1].Alone) / max(c.Jobs[0].Seconds, c.Jobs[1].Seconds)
}

// Predictor tells what becomes of two trainings; the error says what is wrong
// with a profile.
type Predictor interface {
	Predict(a, b Profile) (Colocation, error)
}

const (
	// Periods is into how many the longer of the two is cut.
	Periods = 32
	// slowest and fastest bound a speed, in parts of that alone.
	slowest, fastest = 0.05, 100.0
	// longest bounds a prediction, in periods.
	longest = Periods * 2 / slowest
)

// Play runs two trainings by what is said of a period: the speeds of both while
// they share, of those alone, and what they keep busy. A training whose partner
// has ended runs as it does alone.
func Play(a, b Profile, say func(completion [2]float64) (speed, busy [2]float64)) Colocation {
	alone := [2]Profile{a, b}
	c := Colocation{Period: max(a.Seconds, b.Seconds) / Periods}
	var completion [2]float64
	for k := range alone {
		c.Jobs[k].Alone = alone[k].Seconds
	}
	now := 0.0
	for step := 0; completion[0] < 1 || completion[1] < 1; step++ {
		speed, busy := [2]float64{1, 1}, [2]float64{}
		if completion[0] < 1 && completion[1] < 1 && step < longest {
			speed, busy = say(completion)
		} else {
			for k := range alone {
				busy[k] = alone[k].At(completion[k]).Utilization
			}
		}
		// A period is cut where one of the two ends: the other is alone from there.
		for left := c.Period; left > 0 && (completion[0] < 1 || completion[1] < 1); {
			stretch := left
			for k := range alone {
				if completion[k] < 1 {
					speed[k] = min(max(speed[k], slowest), fastest)
					stretch = min(stretch, (1-completion[k])*alone[k].Seconds/speed[k])
				}
			}
			now, left = now+stretch, left-stretch
			for k, pace := range speed {
				if completion[k] >= 1 {
					continue
				}
				if completion[k] += stretch * pace / alone[k].Seconds; completion[k] >= 1-1e-9 {
					completion[k], c.Jobs[k].Seconds = 1, now
					speed[1-k] = 1
				}
			}
			if left < 1e-9*c.Period {
				break
			}
		}
		for k := range alone {
			c.Jobs[k].Completion = append(c.Jobs[k].Completion, completion[k])
			c.Jobs[k].Utilization = append(c.Jobs[k].Utilization, busy[k])
		}
	}
	return c
}

// CheckBoth says what is wrong with one of two profiles.
func CheckBoth(a, b Profile) error {
	for _, one := range []Profile{a, b} {
		if err := one.check(); err != nil {
			return err
		}
	}
	return nil
}
