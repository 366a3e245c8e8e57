package batching

import (
	"fmt"
	"math"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Policy says when waiting requests become a batch: as soon as an instance is
// free and either MaxBatch requests wait or the oldest has waited WaitSeconds.
// A batch takes all that wait, oldest first, but at most MaxBatch.
type Policy struct {
	// MaxBatch is the largest batch, at least 1.
	MaxBatch int `json:"max_batch"`
	// WaitSeconds is how long the oldest request waits for others while an
	// instance is free; 0 takes whatever waits ("greedy").
	WaitSeconds float64 `json:"wait_seconds"`
	// UntilFull waits for MaxBatch requests however long that takes ("fixed
	// batches"); WaitSeconds has no meaning then.
	UntilFull bool `json:"until_full,omitempty"`
}

// Single is the policy that does not batch.
func Single() Policy { return Policy{MaxBatch: 1} }

// Greedy is the policy that takes whatever waits, at most so many.
func Greedy(most int) Policy { return Policy{MaxBatch: most} }

// Fixed is the policy of batches that are always of the same size.
func Fixed(size int) Policy { return Policy{MaxBatch: size, UntilFull: size > 1} }

// Take decides for a free instance: how many of the waiting requests to take
// now, of which the oldest has waited so long, or, when that is 0, in how many
// seconds to ask again unless another request comes (infinite if only that can
// change anything).
func (p Policy) Take(waiting int, oldestSeconds float64) (take int, againSeconds float64) {
	switch {
	case waiting >= p.MaxBatch:
		return p.MaxBatch, 0
	case waiting == 0 || p.UntilFull:
		return 0, math.Inf(1)
	case oldestSeconds >= p.WaitSeconds:
		return waiting, 0
	default:
		return 0, p.WaitSeconds - oldestSeconds
	}
}

// String names the policy.
func (p Policy) String() string {
	switch {
	case p.MaxBatch == 1:
		return "single"
	case p.UntilFull:
		return fmt.Sprintf("fixed batches of %d", p.MaxBatch)
	case p.WaitSeconds == 0:
		return fmt.Sprintf("greedy, at most %d", p.MaxBatch)
	default:
		return fmt.Sprintf("at most %d, wait %.3g ms", p.MaxBatch, p.WaitSeconds*1000)
	}
}

func (p Policy) check(curve Curve) error {
	var fields []problem.Field
	if p.MaxBatch < 1 || p.MaxBatch > curve.Largest() {
		fields = append(fields, problem.Field{Path: "policy.max_batch", Message: fmt.Sprintf("must be from 1 to %d, the largest batch of the curve", curve.Largest()), Value: p.MaxBatch})
	}
	if !(p.WaitSeconds >= 0) || math.IsInf(p.WaitSeconds, 0) {
		fields = append(fields, problem.Field{Path: "policy.wait_seconds", Message: "must be finite and not below 0; use until_full to wait for ever", Value: p.WaitSeconds})
	}
	if len(fields) > 0 {
		return problem.WithFields("the batching policy cannot be used", fields)
	}
	return nil
}

// Server is what serves the requests.
type Server struct {
	// Curve is the time of an inference, measured with as many instances at
	// work as there are: instances that share cores slow each other down.
	Curve Curve
	// Instances is how many batches can be inferred at the same time; 0 is 1.
	Instances int
	// IdleWatts is the power of an instance with nothing to do, which is added
	// to the joules of the curve; 0 leaves it out.
	IdleWatts float64
}

func (s Server) instances() int { return max(s.Instances, 1) }

func (s Server) check() error {
	var fields []problem.Field
	if s.Curve.Largest() < 1 {
		fields = append(fields, problem.Field{Path: "server.curve", Message: "is missing; make one with NewCurve"})
	}
	if s.Instances < 0 || s.Instances > 1024 {
		fields = append(fields, problem.Field{Path: "server.instances", Message: "must be from 1 to 1024", Value: s.Instances})
	}
	if !(s.IdleWatts >= 0) || math.IsInf(s.IdleWatts, 0) {
		fields = append(fields, problem.Field{Path: "server.idle_watts", Message: "must be a finite number, 0 to leave it out", Value: s.IdleWatts})
	}
	if len(fields) > 0 {
		return problem.WithFields("the server cannot be simulated", fields)
	}
	return nil
}

// Sustains is the rate, in requests a second, up to which the policy keeps up:
// beyond it there is always a full batch waiting, so that an instance infers
// MaxBatch samples in the time of the curve, and the queue still grows.
func (s Server) Sustains(policy Policy) float64 {
	return float64(s.instances()*policy.MaxBatch) / s.Curve.At(policy.MaxBatch).Seconds
}

// Capacity is the highest rate that any policy sustains, in samples a second.
func (s Server) Capacity() float64 { return s.Sustains(Greedy(s.Curve.Cheapest())) }
