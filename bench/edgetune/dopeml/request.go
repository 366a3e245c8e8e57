package dopeml

import "math"

// Pattern is how requests come (DOPE-ML, section 1).
type Pattern string

// The patterns.
const (
	Periodic Pattern = "periodic" // at equal intervals
	Event    Pattern = "event"    // independently of each other: a Poisson process
	Bursty   Pattern = "bursty"   // Inferences at once, at equal intervals
)

func patterns() []Pattern { return []Pattern{Periodic, Event, Bursty} }

// Request is a stream of requests for inferences.
type Request struct {
	// Rate is inferences a second over the long run; 0 when not known.
	Rate float64 `json:"rate"`
	// Batch is how many inferences are run together, at least 1.
	Batch float64 `json:"batch"`
	// Inferences is how many come at once in a burst, or in all; 0 when not known.
	Inferences float64 `json:"inferences"`
	// Pattern is [Periodic] where it is empty.
	Pattern Pattern `json:"pattern,omitempty"`
}

// busy is the share of the time in which a backend that needs so many seconds
// for a batch is working; 0 when the rate is not known.
func (r Request) busy(latency float64) float64 {
	return r.Rate / max(r.Batch, 1) * latency
}

// wait is the mean time in seconds that a batch waits before it is run. It is
// exact for one server with constant service: nothing for periodic requests,
// M/D/1 for events, the batches ahead in its own burst for bursts. It is
// infinite when the backend cannot keep up.
func (r Request) wait(latency float64) float64 {
	load := r.busy(latency)
	if load >= 1 {
		return math.Inf(1)
	}
	switch r.Pattern {
	case Event:
		return load * latency / (2 * (1 - load))
	case Bursty:
		batches := math.Ceil(max(r.Inferences, 1) / max(r.Batch, 1))
		return (batches - 1) / 2 * latency
	}
	return 0
}
