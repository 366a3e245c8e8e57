package batching

import (
	"math/rand/v2"

	"gonum.org/v1/gonum/stat/distuv"
)

// service draws inference times: those of the curve where they do not vary,
// else from the gamma distribution with the point's mean and deviation. That is
// positive and skewed to the right, as times are, and exponential when the
// deviation is the mean, for which queueing theory has exact answers.
type service struct {
	curve  Curve
	random *rand.Rand
}

func (s *service) seconds(batch int) float64 {
	point := &s.curve.by[batch]
	if point.Deviation == 0 {
		return point.Seconds
	}
	rate := point.Seconds / (point.Deviation * point.Deviation)
	return distuv.Gamma{Alpha: point.Seconds * rate, Beta: rate, Src: s.random}.Rand()
}
