package deflate

import (
	"errors"
	"fmt"
	"math"
)

// Class is a priority: what its jobs take.
type Class struct {
	// Service is what a job takes, for each phase of the arrivals in which it may
	// come. A single one holds for all phases.
	Service []Phases
	// Standing, if not 0, is of a class that always has so many jobs waiting: the
	// next is there as soon as one before has begun. No arrivals are counted for it:
	// it gets whatever the classes above leave. Only the lowest class can be so.
	Standing int
}

// Queue is one engine that serves jobs of the classes, the highest priority
// first, those of one class as they came, and without preemption. The last
// class is the highest, as in the thesis.
type Queue struct {
	classes []Class
	slots   int
	// unit is how many seconds all that follows counts as one: what an average job
	// takes. Numbers stay near 1 then.
	unit   float64
	hidden matrix   // D₀, with its diagonal
	marked []matrix // D_k
	phases []complex128
	rates  []float64
	// alone has what a job takes of the whole engine, were all of its slots on it,
	// by class and phase; first and second are the moments. average is of all
	// phases.
	alone         [][]Phases
	running       [][]Phases // and of the slot that it gets
	first, second [][]float64
	average       []Phases
	load          []float64 // of each class
	total         float64
	idle          []complex128   // the share of time without work, by phase
	starts        [][]complex128 // how often a job of the class begins, by phase
	// waits is what is waited with these slots, in parts of what is waited for one
	// server that is as fast as all of them, by class.
	waits []float64
}

// ErrOverloaded is of a queue that grows for ever.
var ErrOverloaded = errors.New("more work comes than can be done")

// NewQueue is the queue before an engine with so many slots, each of which runs
// a job at a time. The error is ErrOverloaded if there is more work than time.
//
// The thesis has one server, since each of its jobs seizes all of the cluster.
// With several slots what is waited for is that of one server which is as fast
// as all of them, times the ratio of what is waited in MAP/M/C and in such a
// MAP/M/1 with the same arrivals: exact for one slot, an approximation else. For
// Poisson arrivals it is that of Bondi and Buzen (The response times of priority
// classes under preemptive resume in M/G/m queues, SIGMETRICS 1984, there for
// means).
func NewQueue(arrivals Arrivals, classes []Class, slots int) (*Queue, error) {
	if len(classes) == 0 || slots < 1 {
		return nil, fmt.Errorf("a queue of %d classes before %d slots: at least one of each is needed", len(classes), slots)
	}
	if err := arrivals.Check(); err != nil {
		return nil, err
	}
	if len(arrivals.Marked) != len(classes) {
		return nil, fmt.Errorf("jobs of %d classes come before a queue of %d: they must be as many", len(arrivals.Marked), len(classes))
	}
	q := &Queue{classes: classes, slots: slots, rates: arrivals.Rates()}
	for k, class := range classes {
		if err := q.check(k, class, len(arrivals.Hidden)); err != nil {
			return nil, err
		}
	}
	q.scale(arrivals)
	if err := q.fill(); err != nil {
		return nil, err
	}
	q.begin()
	pooled := 1.0
	if slots > 1 && classes[0].Standing == 0 {
		pooled = q.pooled()
	}
	for range classes {
		q.waits = append(q.waits, pooled)
	}
	return q, nil
}

// check says what is wrong with a class.
func (q *Queue) check(k int, class Class, phases int) error {
	switch {
	case class.Standing < 0 || class.Standing > 0 && k > 0:
		return fmt.Errorf("class %d always has %d jobs waiting: only the lowest can have, those below it would never run", k, class.Standing)
	case class.Standing == 0 && !(q.rates[k] > 0):
		return fmt.Errorf("jobs of class %d come at a rate of %g: it must be positive", k, q.rates[k])
	case class.Standing > 0 && q.rates[k] > 0:
		return fmt.Errorf("class %d always has %d jobs waiting, and jobs of it come at a rate of %g besides: one or the other", k, class.Standing, q.rates[k])
	case len(class.Service) != 1 && len(class.Service) != phases:
		return fmt.Errorf("class %d has %d distributions of what a job takes for %d phases of the arrivals: one for each, or a single one", k, len(class.Service), phases)
	}
	for _, service := range class.Service {
		if err := service.Check(); err != nil {
			return fmt.Errorf("class %d: %w", k, err)
		}
	}
	return nil
}

// scale brings arrivals and services to a unit of time of their own.
func (q *Queue) scale(arrivals Arrivals) {
	m, jobs := len(arrivals.Hidden), 0.0
	for k, class := range q.classes {
		rate := q.rates[k]
		if class.Standing > 0 {
			rate = 1e-9
		}
		for _, service := range class.Service {
			mean, _ := service.Moments()
			q.unit += rate * mean / float64(len(class.Service))
		}
		jobs += rate
	}
	q.unit /= jobs * float64(q.slots)
	unit := complex(q.unit, 0)
	q.hidden = newMatrix(m)
	q.hidden.add(realMatrix(arrivals.Hidden), unit)
	for i := range m {
		q.hidden.at[i*m+i] = complex(-arrivals.out(i), 0) * unit
	}
	for k, rows := range arrivals.Marked {
		marked := newMatrix(m)
		marked.add(realMatrix(rows), unit)
		q.marked = append(q.marked, marked)
		q.rates[k] *= q.unit
	}
	q.phases = q.generator(0, len(q.marked)).stationary()
}

// generator is D₀ with the marked moves of the classes from one to before
// another.
func (q *Queue) generator(from, before int) matrix {
	sum := q.hidden.clone()
	for k := from; k < before; k++ {
		sum.add(q.marked[k], 1)
	}
	return sum
}

// fill sums the loads up, with what a standing class gets of the engine.
func (q *Queue) fill() error {
	m := q.hidden.size
	for k, class := range q.classes {
		var alone, running []Phases
		first, second := make([]float64, m), make([]float64, m)
		for i := range m {
			service := class.Service[min(i, len(class.Service)-1)]
			one := service.Sprinted(float64(q.slots) * q.unit)
			alone, running = append(alone, one), append(running, service.Sprinted(q.unit))
			first[i], second[i] = one.Moments()
		}
		q.alone, q.running, q.first, q.second = append(q.alone, alone), append(q.running, running), append(q.first, first), append(q.second, second)
		q.average = append(q.average, q.mixture(k))
		mean, _ := q.average[k].Moments()
		q.load = append(q.load, q.rates[k]*mean)
		q.total += q.load[k]
		if class.Standing > 0 {
			q.load[k] = mean // so far: of one job
		}
	}
	if q.classes[0].Standing > 0 {
		left := max(0, 1-q.total)
		q.rates[0], q.load[0] = left/q.load[0], left
		q.total += left
	}
	if above := q.total - q.load[0]; above >= 1 || q.classes[0].Standing == 0 && q.total >= 1 {
		return fmt.Errorf("%w: %.3f seconds of work a second and slot", ErrOverloaded, q.total)
	}
	return nil
}

// mixture is what a job of the class takes of the whole engine, whatever phase it
// comes in.
func (q *Queue) mixture(k int) Phases {
	if len(q.classes[k].Service) == 1 {
		return q.alone[k][0]
	}
	weights := make([]float64, q.hidden.size)
	for i := range weights {
		weights[i] = q.share(k, i)
	}
	return mixed(weights, q.alone[k])
}

// share is which part of a class's jobs comes in the phase.
func (q *Queue) share(k, phase int) float64 {
	rate := complex(0, 0)
	for j := range q.hidden.size {
		rate += q.marked[k].at[phase*q.hidden.size+j]
	}
	return real(q.phases[phase]*rate) / q.rates[k]
}

// Load is the share of the time in which a slot works.
func (q *Queue) Load() float64 { return q.total }

// Mean is the mean response time of a class, waiting and running, in seconds: for
// Poisson arrivals it is Cobham's formula. That of a standing class is from when
// the job before it began.
func (q *Queue) Mean(k int) float64 {
	if standing := q.classes[k].Standing; standing > 0 {
		run, _ := q.classes[k].Service[0].Moments()
		return float64(standing)/q.rates[k]*q.unit + run
	}
	run := 0.0
	for i := range q.hidden.size {
		run += q.share(k, i) * q.first[k][i] * float64(q.slots)
	}
	return (q.waits[k]*q.meanWait(k) + run) * q.unit
}

// Tail is the probability that a response of the class takes longer.
func (q *Queue) Tail(k int, seconds float64) float64 {
	if seconds <= 0 {
		return 1
	}
	value := invert(func(s complex128) complex128 { return (1 - q.response(k, s)) / s }, seconds/q.unit)
	return min(1, max(0, value))
}

// Quantile is the time within which such a share of the class's responses come.
func (q *Queue) Quantile(k int, share float64) (float64, error) {
	if !(share > 0 && share < 1) {
		return 0, fmt.Errorf("a share of %g: it must be between 0 and 1", share)
	}
	low, high := 0.0, q.Mean(k)
	for q.Tail(k, high) > 1-share {
		low, high = high, 2*high
		if math.IsInf(high, 0) {
			return 0, fmt.Errorf("the %g quantile of class %d cannot be found", share, k)
		}
	}
	for range 60 {
		middle := (low + high) / 2
		if q.Tail(k, middle) > 1-share {
			low = middle
		} else {
			high = middle
		}
		if high-low < 1e-6*high {
			break
		}
	}
	return high, nil
}
