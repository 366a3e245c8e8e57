package batching

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// LargestBatch is the largest batch size that a curve may have.
const LargestBatch = 1 << 16

// Point is what one inference of a batch size takes, measured or estimated.
type Point struct {
	// Batch is the number of samples that are inferred at once.
	Batch int
	// Seconds is the mean time of one inference of the whole batch.
	Seconds float64
	// Joules is the energy of one inference of the whole batch, 0 if not known.
	Joules float64
	// Deviation is the standard deviation of the seconds, 0 if inference always
	// takes as long.
	Deviation float64
}

// Curve is the time of an inference by batch size, for every size from 1 to the
// largest measured one: linear between the measured sizes, never falling, and
// not extrapolated. The zero value is no curve; [NewCurve] makes one.
type Curve struct {
	by       []Point // by[b] is batch size b; by[0] is nothing
	energies bool
}

// NewCurve returns the curve through the points, which must be sorted by batch
// size and begin with batch 1. Where a larger batch was measured to be faster
// than a smaller one, which is noise (the larger one could be filled up), the
// neighbours are averaged until no time falls (isotonic regression).
func NewCurve(points []Point) (Curve, error) {
	if err := check(points); err != nil {
		return Curve{}, err
	}
	curve := Curve{energies: points[0].Joules > 0}
	smooth := append([]Point(nil), points...)
	for i, seconds := range isotonic(points) {
		smooth[i].Seconds = seconds
	}
	curve.by = make([]Point, 1, smooth[len(smooth)-1].Batch+1)
	curve.by = append(curve.by, smooth[0])
	for i := 1; i < len(smooth); i++ {
		for batch := smooth[i-1].Batch + 1; batch <= smooth[i].Batch; batch++ {
			curve.by = append(curve.by, between(smooth[i-1], smooth[i], batch))
		}
	}
	return curve, nil
}

// check says what is wrong with the first point that cannot be.
func check(points []Point) error {
	usable := func(value, least float64) bool { return value >= least && !math.IsInf(value, 0) }
	for i, point := range points {
		switch {
		case i == 0 && point.Batch != 1, i > 0 && point.Batch <= points[i-1].Batch, point.Batch > LargestBatch:
			return problem.New(problem.Invalid, "the latency curve has batch %d as point %d: batches go from 1 up to %d", point.Batch, i, LargestBatch)
		case !usable(point.Seconds, math.SmallestNonzeroFloat64), !usable(point.Deviation, 0), !usable(point.Joules, 0):
			return problem.New(problem.Invalid, "the latency curve has %g s ± %g and %g J for batch %d: they must be finite, and the seconds above 0", point.Seconds, point.Deviation, point.Joules, point.Batch)
		case (point.Joules > 0) != (points[0].Joules > 0):
			return problem.New(problem.Invalid, "the latency curve has the joules of some batches only: give those of all or of none")
		}
	}
	if len(points) == 0 {
		return problem.New(problem.Invalid, "the latency curve has no points: give at least batch 1")
	}
	return nil
}

// isotonic is the non-falling sequence closest to the seconds of the points, in
// the sum of squares (pool adjacent violators).
func isotonic(points []Point) []float64 {
	type pool struct {
		mean  float64
		count int
	}
	var pools []pool
	for _, point := range points {
		pools = append(pools, pool{point.Seconds, 1})
		for n := len(pools); n > 1 && pools[n-2].mean > pools[n-1].mean; n = len(pools) {
			a, b := pools[n-2], pools[n-1]
			count := a.count + b.count
			mean := a.mean + (b.mean-a.mean)*float64(b.count)/float64(count)
			pools = append(pools[:n-2], pool{mean, count})
		}
	}
	var seconds []float64
	for _, one := range pools {
		for range one.count {
			seconds = append(seconds, one.mean)
		}
	}
	return seconds
}

func between(low, high Point, batch int) Point {
	if batch == high.Batch {
		return high
	}
	at := float64(batch-low.Batch) / float64(high.Batch-low.Batch)
	mix := func(a, b float64) float64 { return a + (b-a)*at }
	return Point{Batch: batch, Seconds: mix(low.Seconds, high.Seconds), Joules: mix(low.Joules, high.Joules), Deviation: mix(low.Deviation, high.Deviation)}
}

// Largest is the largest batch size of the curve.
func (c Curve) Largest() int { return len(c.by) - 1 }

// At is what one inference of the batch size takes; batch must be from 1 to
// [Curve.Largest].
func (c Curve) At(batch int) Point { return c.by[batch] }

// HasJoules tells whether the energy of an inference is known.
func (c Curve) HasJoules() bool { return c.energies }

// Varies tells whether inference times vary.
func (c Curve) Varies() bool {
	return slices.ContainsFunc(c.by, func(p Point) bool { return p.Deviation > 0 })
}

// Cheapest is the smallest batch size with the lowest seconds a sample.
func (c Curve) Cheapest() int {
	best := 1
	for batch := 2; batch <= c.Largest(); batch++ {
		if c.perSample(batch) < c.perSample(best)*(1-1e-12) {
			best = batch
		}
	}
	return best
}

func (c Curve) perSample(batch int) float64 { return c.by[batch].Seconds / float64(batch) }
