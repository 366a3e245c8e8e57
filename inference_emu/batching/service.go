package batching

import (
	"math"
	"math/rand/v2"
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
	relative := point.Deviation / point.Seconds
	shape := 1 / (relative * relative)
	return point.Seconds / shape * gamma(s.random, shape)
}

// gamma draws from the gamma distribution of scale 1, by the method of
// Marsaglia and Tsang (2000).
func gamma(random *rand.Rand, shape float64) float64 {
	if shape == 1 {
		return random.ExpFloat64()
	}
	boost := 1.0
	if shape < 1 {
		boost = math.Pow(1-random.Float64(), 1/shape)
		shape++
	}
	d := shape - 1.0/3
	c := 1 / math.Sqrt(9*d)
	for {
		normal := random.NormFloat64()
		v := 1 + c*normal
		if v <= 0 {
			continue
		}
		v = v * v * v
		if math.Log(1-random.Float64()) < 0.5*normal*normal+d-d*v+d*math.Log(v) {
			return boost * d * v
		}
	}
}
