package batching

import "math/rand/v2"

// Arrivals is when requests come, each of one sample, as of [Poisson].
type Arrivals interface {
	// PerSecond is the mean number of requests in a second.
	PerSecond() float64
	// Times are the seconds at which the first so many requests come, in
	// order; the same for the same seed. There may be fewer.
	Times(requests int, seed uint64) []float64
}

// Poisson is requests that come independently of each other.
type Poisson struct {
	Rate float64 // requests a second
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

// The streams of random numbers that come of one seed.
const (
	arrivalStream uint64 = iota + 1
	serviceStream
)

func stream(seed, which uint64) *rand.Rand { return rand.New(rand.NewPCG(seed, which)) }
