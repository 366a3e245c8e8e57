package deflate

import (
	"errors"
	"fmt"
	"math"
	"math/cmplx"
)

// Class is a priority: how often its jobs come, per second, and what they take.
type Class struct {
	Rate    float64
	Service Phases
	// Standing, if not 0, is of a class that always has so many jobs waiting: the
	// next is there as soon as one before has begun. Its rate is not used then: it
	// gets whatever the classes above leave. Only the lowest class can be so.
	Standing int
}

// Queue is one engine that serves jobs of the classes, the highest priority
// first, those of one class as they came, and without preemption. The last
// class is the highest, as in the thesis.
type Queue struct {
	classes []Class
	slots   int
	// alone has what a job takes of the whole engine, were all of its slots on it.
	alone []Phases
	load  []float64 // of each class
	mean  []float64
	busy  float64 // Σ λ E[S²] / 2: the work that is found under way
	total float64
	// waits is the probability that all slots are busy, in parts of the load: 1
	// for one slot.
	waits float64
}

// ErrOverloaded is of a queue that grows for ever.
var ErrOverloaded = errors.New("more work comes than can be done")

// NewQueue is the queue before an engine with so many slots, each of which runs
// a job at a time. The error is ErrOverloaded if there is more work than time.
//
// The thesis has one server, since each of its jobs seizes all of the cluster.
// With several slots what is waited for is that of one server which is as fast
// as all of them, times the ratio of what is waited in M/M/C and in such an
// M/M/1 (Bondi and Buzen, The response times of priority classes under
// preemptive resume in M/G/m queues, SIGMETRICS 1984, there for means): exact
// for one slot, an approximation else.
func NewQueue(classes []Class, slots int) (*Queue, error) {
	if len(classes) == 0 || slots < 1 {
		return nil, fmt.Errorf("a queue of %d classes before %d slots: at least one of each is needed", len(classes), slots)
	}
	q := &Queue{slots: slots, waits: 1}
	for k, class := range classes {
		if class.Standing < 0 || class.Standing > 0 && k > 0 {
			return nil, fmt.Errorf("class %d always has %d jobs waiting: only the lowest can have, those below it would never run", k, class.Standing)
		}
		if class.Standing == 0 && (!(class.Rate > 0) || math.IsInf(class.Rate, 0)) {
			return nil, fmt.Errorf("jobs of class %d come at a rate of %g: it must be positive", k, class.Rate)
		}
		if err := class.Service.Check(); err != nil {
			return nil, fmt.Errorf("class %d: %w", k, err)
		}
		mean, _ := class.Service.Moments()
		q.mean, q.alone = append(q.mean, mean), append(q.alone, class.Service.Sprinted(float64(slots)))
		q.classes = append(q.classes, class)
		q.load = append(q.load, class.Rate*mean/float64(slots))
	}
	if err := q.fill(); err != nil {
		return nil, err
	}
	return q, nil
}

// fill sums the loads up, with what a standing class gets of the engine.
func (q *Queue) fill() error {
	above, _ := q.above(0)
	if q.classes[0].Standing > 0 {
		q.classes[0].Rate = max(0, 1-above) * float64(q.slots) / q.mean[0]
		q.load[0] = max(0, 1-above)
	}
	q.total = above + q.load[0]
	if above >= 1 || q.classes[0].Standing == 0 && q.total >= 1 {
		return fmt.Errorf("%w: %.3f seconds of work a second and slot", ErrOverloaded, q.total)
	}
	for k, class := range q.classes {
		_, square := q.alone[k].Moments()
		q.busy += class.Rate * square / 2
	}
	if q.slots > 1 && q.classes[0].Standing == 0 {
		q.waits = erlang(q.slots, q.total*float64(q.slots)) / q.total
	}
	return nil
}

// erlang is the probability that a job of M/M/C has to wait when so much work
// comes a second (Erlang's C formula, by the recursion of his B formula).
func erlang(slots int, work float64) float64 {
	blocked := 1.0
	for n := 1; n <= slots; n++ {
		blocked = work * blocked / (float64(n) + work*blocked)
	}
	c := float64(slots)
	return c * blocked / (c - work*(1-blocked))
}

// Load is the share of the time in which a slot works.
func (q *Queue) Load() float64 { return q.total }

// above is the load of the classes with a higher priority.
func (q *Queue) above(k int) (load, rate float64) {
	for j := k + 1; j < len(q.classes); j++ {
		load += q.load[j]
		rate += q.classes[j].Rate
	}
	return load, rate
}

// Mean is the mean response time of a class, waiting and running, in seconds
// (Cobham's formula). That of a standing class is from when the job before it
// began.
func (q *Queue) Mean(k int) float64 {
	higher, _ := q.above(k)
	if standing := q.classes[k].Standing; standing > 0 {
		return float64(standing)*q.mean[k]/float64(q.slots)/(1-higher) + q.mean[k]
	}
	return q.waits*q.busy/((1-higher)*(1-higher-q.load[k])) + q.mean[k]
}

// Tail is the probability that a response of the class takes longer.
func (q *Queue) Tail(k int, seconds float64) float64 {
	if seconds <= 0 {
		return 1
	}
	value := invert(func(s complex128) complex128 { return (1 - q.response(k, s)) / s }, seconds)
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

// response is the transform of a class's response time: of its waiting (Conway,
// Maxwell and Miller, section 8-6) and its running.
func (q *Queue) response(k int, s complex128) complex128 {
	_, rate := q.above(k)
	z := s
	if rate > 0 {
		z = s + complex(rate, 0) - complex(rate, 0)*q.busyPeriod(k, s)
	}
	running := q.classes[k].Service.transform(s)
	if standing := q.classes[k].Standing; standing > 0 {
		// Those before it, each with all of the higher classes that come meanwhile.
		return cmplx.Pow(q.alone[k].transform(z), complex(float64(standing), 0)) * running
	}
	numerator := complex(1-q.total, 0) * z
	for j := range k {
		numerator += complex(q.classes[j].Rate, 0) * (1 - q.alone[j].transform(z))
	}
	own := complex(q.classes[k].Rate, 0)
	denominator := s - own + own*q.alone[k].transform(z)
	waiting := numerator / denominator
	if !finite(waiting) {
		return 0
	}
	return (complex(1-q.waits, 0) + complex(q.waits, 0)*waiting) * running
}

// busyPeriod is the transform of the time that a job of a higher class than k
// keeps the engine from those of k, with all of the higher classes that come
// meanwhile: the fixed point of G(s) = B(s + λ − λG(s)).
func (q *Queue) busyPeriod(k int, s complex128) complex128 {
	_, rate := q.above(k)
	g := complex(0, 0)
	for range 10_000 {
		at := s + complex(rate, 0) - complex(rate, 0)*g
		next := complex(0, 0)
		for j := k + 1; j < len(q.classes); j++ {
			next += complex(q.classes[j].Rate/rate, 0) * q.alone[j].transform(at)
		}
		if cmplx.Abs(next-g) < 1e-13 {
			return next
		}
		g = next
	}
	return g
}
