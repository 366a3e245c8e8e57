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
}

// Queue is one engine that serves jobs of the classes one after the other, the
// highest priority first, those of one class as they came, and without
// preemption. The last class is the highest, as in the thesis.
type Queue struct {
	classes []Class
	load    []float64 // of each class
	mean    []float64
	busy    float64 // Σ λ E[S²] / 2: the work that is found under way
	total   float64
}

// ErrOverloaded is of a queue that grows for ever.
var ErrOverloaded = errors.New("more work comes than can be done")

// NewQueue checks the classes. The error is ErrOverloaded if there is more work
// than time.
func NewQueue(classes []Class) (*Queue, error) {
	if len(classes) == 0 {
		return nil, errors.New("a queue needs a class")
	}
	q := &Queue{classes: classes}
	for k, class := range classes {
		if !(class.Rate > 0) || math.IsInf(class.Rate, 0) {
			return nil, fmt.Errorf("jobs of class %d come at a rate of %g: it must be positive", k, class.Rate)
		}
		if err := class.Service.Check(); err != nil {
			return nil, fmt.Errorf("class %d: %w", k, err)
		}
		mean, square := class.Service.Moments()
		q.mean, q.load = append(q.mean, mean), append(q.load, class.Rate*mean)
		q.busy += class.Rate * square / 2
		q.total += class.Rate * mean
	}
	if q.total >= 1 {
		return nil, fmt.Errorf("%w: %.3f seconds of work a second", ErrOverloaded, q.total)
	}
	return q, nil
}

// Load is the share of the time in which the engine works.
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
// (Cobham's formula).
func (q *Queue) Mean(k int) float64 {
	higher, _ := q.above(k)
	return q.busy/((1-higher)*(1-higher-q.load[k])) + q.mean[k]
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
	numerator := complex(1-q.total, 0) * z
	for j := range k {
		numerator += complex(q.classes[j].Rate, 0) * (1 - q.classes[j].Service.transform(z))
	}
	own := complex(q.classes[k].Rate, 0)
	denominator := s - own + own*q.classes[k].Service.transform(z)
	waiting := numerator / denominator
	if !finite(waiting) {
		return 0
	}
	return waiting * q.classes[k].Service.transform(s)
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
			next += complex(q.classes[j].Rate/rate, 0) * q.classes[j].Service.transform(at)
		}
		if cmplx.Abs(next-g) < 1e-13 {
			return next
		}
		g = next
	}
	return g
}
