// Package deflate answers: how much of their data must jobs of low priority leave
// out, so that jobs of all priorities are answered in time without an eviction?
//
// It is the model of DiAS (I. Rocha's thesis, Neuchâtel 2021, chapter 4): what a
// job takes is a phase-type distribution made of its stages and tasks
// ([Stages], equation 4.1), of which a share is dropped; jobs of K priorities
// wait for one engine without preemption; and the distribution of their response
// times ([Queue.Response]) tells which drop ratios keep the limits of latency and
// accuracy ([Choose]). Its one invariant: what it calls feasible keeps every
// limit in the model. It does no I/O and knows no clock.
//
// Arrivals are marked Markovian processes ([Arrivals], MMAP[K] of section 4.3),
// fitted to what was observed ([FitArrivals]); the response times are known as
// transforms ([Queue]), which are inverted numerically (Abate and Whitt, ORSA
// Journal on Computing 7, 1995). Evictions and accounts of energy for sprints are
// played, event by event ([Engine.Replay]).
package deflate

import (
	"errors"
	"fmt"
	"math"
)

// Phases is an acyclic phase-type distribution: a job begins in a phase, moves
// on to later ones at their rates, and is done when it leaves. Rates are per
// second.
type Phases struct {
	// Begin is the probability to begin in each phase; what is missing to 1 is
	// that there is nothing to do.
	Begin []float64
	// Next has, for each phase, the rates to later phases; Done the rate to the
	// end.
	Next [][]Step
	Done []float64
}

// Step is a transition to a later phase.
type Step struct {
	To   int
	Rate float64
}

// Check says what is wrong with the distribution.
func (p Phases) Check() error {
	n := len(p.Begin)
	if n == 0 || len(p.Next) != n || len(p.Done) != n {
		return errors.New("a phase-type distribution has a beginning, steps and an end for each of its phases, and at least one phase")
	}
	sum := 0.0
	for i := range n {
		if !(p.Begin[i] >= 0) || !(p.Done[i] >= 0) || math.IsInf(p.Done[i], 0) {
			return fmt.Errorf("phase %d begins with probability %g and ends at rate %g: neither may be negative", i, p.Begin[i], p.Done[i])
		}
		sum += p.Begin[i]
		out := p.Done[i]
		for _, step := range p.Next[i] {
			if step.To <= i || step.To >= n || !(step.Rate >= 0) || math.IsInf(step.Rate, 0) {
				return fmt.Errorf("phase %d has a step to %d at rate %g: steps go to later phases at finite rates", i, step.To, step.Rate)
			}
			out += step.Rate
		}
		if out == 0 {
			return fmt.Errorf("phase %d never ends", i)
		}
	}
	if sum > 1+1e-9 {
		return fmt.Errorf("the probabilities to begin add up to %g", sum)
	}
	return nil
}

// out is the rate at which a phase is left.
func (p Phases) out(i int) float64 {
	sum := p.Done[i]
	for _, step := range p.Next[i] {
		sum += step.Rate
	}
	return sum
}

// Moments are the mean and the mean of the square, in seconds.
func (p Phases) Moments() (mean, square float64) {
	n := len(p.Begin)
	first, second := make([]float64, n), make([]float64, n)
	for i := n - 1; i >= 0; i-- {
		out := p.out(i)
		first[i], second[i] = 1/out, 2/(out*out)
		for _, step := range p.Next[i] {
			share := step.Rate / out
			first[i] += share * first[step.To]
			second[i] += share * (second[step.To] + 2*first[step.To]/out)
		}
		mean += p.Begin[i] * first[i]
		square += p.Begin[i] * second[i]
	}
	return mean, square
}

// transform is the Laplace transform of the density.
func (p Phases) transform(s complex128) complex128 {
	n := len(p.Begin)
	values := make([]complex128, n)
	sum, begin := complex(0, 0), 0.0
	for i := n - 1; i >= 0; i-- {
		value := complex(p.Done[i], 0)
		for _, step := range p.Next[i] {
			value += complex(step.Rate, 0) * values[step.To]
		}
		values[i] = value / (s + complex(p.out(i), 0))
		sum += complex(p.Begin[i], 0) * values[i]
		begin += p.Begin[i]
	}
	return sum + complex(1-begin, 0)
}

// Stage is a part of a job: tasks that run beside each other, one after the
// other stage. How many there are is random.
type Stage struct {
	// Seconds is what a task takes in the mean; its distribution is exponential,
	// as in equation 4.1.
	Seconds float64
	// Tasks is the probability of each number of them, from 1: Tasks[0] is that
	// of one task.
	Tasks []float64
	// Drop is the share of the tasks that is left out (θ): ⌈n(1−θ)⌉ of n run.
	Drop float64
}

// Stages is the distribution of a job that goes through the stages with so many
// slots (equation 4.1: with t ≥ C tasks left the next one ends at rate Cμ, below
// that at tμ).
func Stages(slots int, stages ...Stage) (Phases, error) {
	if slots < 1 || len(stages) == 0 {
		return Phases{}, fmt.Errorf("%d slots and %d stages: at least one of each is needed", slots, len(stages))
	}
	var p Phases
	// Where each stage begins with so many tasks left is known from behind.
	starts := make([]func(weight float64, to func(phase int, weight float64)), len(stages))
	total := 0
	firsts := make([]int, len(stages))
	sizes := make([]int, len(stages))
	for i, stage := range stages {
		if !(stage.Seconds > 0) || math.IsInf(stage.Seconds, 0) || !(stage.Drop >= 0 && stage.Drop < 1) || len(stage.Tasks) == 0 {
			return Phases{}, fmt.Errorf("stage %d takes %g s a task, drops %g of %d numbers of tasks: the first must be positive, the second from 0 to below 1, and there must be a task", i, stage.Seconds, stage.Drop, len(stage.Tasks))
		}
		sum := 0.0
		for _, probability := range stage.Tasks {
			if !(probability >= 0) {
				return Phases{}, fmt.Errorf("stage %d has a probability of %g", i, probability)
			}
			sum += probability
		}
		if math.Abs(sum-1) > 1e-9 {
			return Phases{}, fmt.Errorf("the probabilities of stage %d add up to %g", i, sum)
		}
		sizes[i] = kept(len(stage.Tasks), stage.Drop)
		firsts[i] = total
		total += sizes[i]
		starts[i] = func(weight float64, to func(int, float64)) {
			for tasks, probability := range stage.Tasks {
				// The phase of t tasks left is sizes − t behind the first.
				to(firsts[i]+sizes[i]-kept(tasks+1, stage.Drop), weight*probability)
			}
		}
	}
	p.Begin, p.Next, p.Done = make([]float64, total), make([][]Step, total), make([]float64, total)
	starts[0](1, func(phase int, weight float64) { p.Begin[phase] += weight })
	for i, stage := range stages {
		for left := sizes[i]; left >= 1; left-- {
			phase, rate := firsts[i]+sizes[i]-left, float64(min(left, slots))/stage.Seconds
			switch {
			case left > 1:
				p.Next[phase] = []Step{{phase + 1, rate}}
			case i+1 < len(stages):
				starts[i+1](rate, func(to int, weight float64) {
					if weight > 0 {
						p.Next[phase] = append(p.Next[phase], Step{to, weight})
					}
				})
			default:
				p.Done[phase] = rate
			}
		}
	}
	return p, nil
}

// kept is how many of the tasks run.
func kept(tasks int, drop float64) int { return max(1, int(math.Ceil(float64(tasks)*(1-drop)-1e-9))) }

// Sprinted is the distribution with everything so many times as fast: the
// effective rate of a job that sprints (section 4.3).
func (p Phases) Sprinted(speed float64) Phases {
	fast := Phases{Begin: p.Begin, Next: make([][]Step, len(p.Next)), Done: make([]float64, len(p.Done))}
	for i := range p.Next {
		fast.Done[i] = p.Done[i] * speed
		for _, step := range p.Next[i] {
			fast.Next[i] = append(fast.Next[i], Step{step.To, step.Rate * speed})
		}
	}
	return fast
}

// mixed is one of the distributions, each with its probability.
func mixed(weights []float64, list []Phases) Phases {
	var sum Phases
	for i, one := range list {
		first := len(sum.Begin)
		for k, probability := range one.Begin {
			sum.Begin, sum.Done = append(sum.Begin, weights[i]*probability), append(sum.Done, one.Done[k])
			var steps []Step
			for _, step := range one.Next[k] {
				steps = append(steps, Step{first + step.To, step.Rate})
			}
			sum.Next = append(sum.Next, steps)
		}
	}
	return sum
}

// invert is the value at a time of the function with the transform: the Euler
// algorithm of Abate and Whitt, whose error is about 10⁻⁷ for functions between
// 0 and 1.
func invert(transform func(complex128) complex128, at float64) float64 {
	const (
		terms = 38
		mean  = 11
		width = 18.4
	)
	half := width / (2 * at)
	value := real(transform(complex(half, 0))) / 2
	partial := make([]float64, 0, mean+1)
	for k := 1; k <= terms+mean; k++ {
		term := real(transform(complex(half, float64(k)*math.Pi/at)))
		if k%2 == 1 {
			term = -term
		}
		value += term
		if k >= terms {
			partial = append(partial, value)
		}
	}
	// Euler's summation: the mean of the last partial sums by binomial weights.
	sum, weight := 0.0, math.Pow(2, -mean)
	for j := range mean + 1 {
		sum += weight * partial[j]
		weight *= float64(mean-j) / float64(j+1)
	}
	return math.Exp(width/2) / at * sum
}
