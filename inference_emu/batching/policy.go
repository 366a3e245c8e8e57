package batching

// Policy says when waiting requests become a batch: as soon as the server is free and either MaxBatch requests wait or the oldest has waited WaitSeconds.
// A batch takes all that wait, oldest first, but at most MaxBatch.
type Policy struct {
	// MaxBatch is the largest batch, at least 1.
	MaxBatch int
	// WaitSeconds is how long the oldest request waits for others while the
	// server is free; 0 takes whatever waits ("greedy").
	WaitSeconds float64
	// UntilFull waits for MaxBatch requests however long that takes ("fixed
	// batches"); WaitSeconds has no meaning then.
	UntilFull bool
}

// Single is the policy that does not batch.
func Single() Policy { return Policy{MaxBatch: 1} }

// Greedy is the policy that takes whatever waits, at most so many.
func Greedy(most int) Policy { return Policy{MaxBatch: most} }

// Fixed is the policy of batches that are always of the same size.
func Fixed(size int) Policy { return Policy{MaxBatch: size, UntilFull: size > 1} }

// Server is what serves the requests.
type Server struct {
	Curve Curve
	// IdleWatts is its power with nothing to do, which is added to the joules of the
	// curve; 0 leaves it out.
	IdleWatts float64
}

// Sustains is the rate, in requests a second, up to which the policy keeps up:
// beyond it there is always a full batch waiting, so that it infers MaxBatch samples in the time of the curve, and the queue still grows.
func (s Server) Sustains(policy Policy) float64 {
	return float64(policy.MaxBatch) / s.Curve.At(policy.MaxBatch).Seconds
}

// Capacity is the highest rate that any policy sustains, in samples a second.
func (s Server) Capacity() float64 { return s.Sustains(Greedy(s.Curve.Cheapest())) }
