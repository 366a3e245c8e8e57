package batching

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Arrivals is when requests come, each of one sample: [Poisson] or [Recorded].
type Arrivals interface {
	// PerSecond is the mean number of requests in a second.
	PerSecond() float64
	// Times are the seconds at which the first so many requests come, in
	// order; the same for the same seed. A recording may have fewer.
	Times(requests int, seed uint64) []float64
	check() error
}

// Poisson is requests that come independently of each other.
type Poisson struct {
	Rate float64 `json:"rate"` // requests a second
}

// PerSecond is the rate.
func (p Poisson) PerSecond() float64 { return p.Rate }

// Times are sums of exponential gaps.
func (p Poisson) Times(requests int, seed uint64) []float64 {
	random := stream(seed, arrivalStream)
	times := make([]float64, requests)
	now := 0.0
	for i := range times {
		now += random.ExpFloat64()
		times[i] = now / p.Rate
	}
	return times
}

func (p Poisson) check() error { return positive("poisson", "rate", p.Rate) }

// Recorded is requests that came once, at these seconds.
type Recorded struct {
	Seconds []float64 `json:"seconds"`
}

// PerSecond is the gaps between the requests by the time from first to last.
func (r Recorded) PerSecond() float64 {
	last := len(r.Seconds) - 1
	return float64(last) / (r.Seconds[last] - r.Seconds[0])
}

// Times are the recorded ones, at most so many, whatever the seed.
func (r Recorded) Times(requests int, _ uint64) []float64 {
	return append([]float64(nil), r.Seconds[:min(requests, len(r.Seconds))]...)
}

func (r Recorded) check() error {
	fault := func(i int, message string) error {
		field := problem.Field{Path: fmt.Sprintf("recorded.seconds[%d]", i), Message: message, Value: r.Seconds[i]}
		return problem.WithFields("the arrivals cannot be simulated", []problem.Field{field})
	}
	if len(r.Seconds) < 2 {
		return problem.WithFields("the arrivals cannot be simulated", []problem.Field{{Path: "recorded.seconds", Message: "needs at least 2 times", Value: len(r.Seconds)}})
	}
	for i, at := range r.Seconds {
		if math.IsNaN(at) || math.IsInf(at, 0) || at < 0 {
			return fault(i, "must be a finite number of seconds, not below 0")
		}
		if i > 0 && at < r.Seconds[i-1] {
			return fault(i, "must not be before the time above it: sort the times")
		}
	}
	if r.Seconds[len(r.Seconds)-1] == r.Seconds[0] {
		return fault(0, "all requests come at the same time, so there is no rate; give at least two times")
	}
	return nil
}

func positive(process, name string, value float64) error {
	if value > 0 && !math.IsInf(value, 0) {
		return nil
	}
	return problem.WithFields("the arrivals cannot be simulated", []problem.Field{{Path: process + "." + name, Message: "must be a finite number above 0", Value: value}})
}

// The streams of random numbers that come of one seed.
const (
	arrivalStream uint64 = iota + 1
	serviceStream
)

func stream(seed, which uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, which)) }
