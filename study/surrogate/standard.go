package surrogate

import "math"

// Standard brings scores to mean 0 and variance 1. A score further behind the
// median than the best one is ahead of it counts as just so far behind, and so
// does the score -Inf of failures and of trainings that diverged: how bad
// something is tells nothing of where the best is, and would leave no scale
// for it.
type Standard struct{ floor, mean, deviation float64 }

// largest stands for infinity, so that differences are numbers.
const largest = 1e300

// NewStandard is made from scores in descending order, NaN not among them.
func NewStandard(scores []float64) Standard {
	usable := 0
	for usable < len(scores) && !math.IsInf(scores[usable], -1) {
		usable++
	}
	if usable == 0 {
		return Standard{}
	}
	median := min(scores[usable/2], largest)
	s := Standard{floor: max(median-(min(scores[0], largest)-median), -largest)}
	n := float64(len(scores))
	for _, score := range scores {
		s.mean += s.clip(score) / n
	}
	for _, score := range scores {
		off := s.clip(score) - s.mean
		s.deviation += off * off / n
	}
	s.deviation = math.Sqrt(s.deviation)
	if s.deviation < 1e-12*math.Abs(s.mean) { // nothing but rounding
		s.deviation = 0
	}
	return s
}

func (s Standard) clip(score float64) float64 { return min(max(score, s.floor), largest) }

// Of is the standardized score: 0 for all where the scores cannot be told apart.
func (s Standard) Of(score float64) float64 {
	value := (s.clip(score) - s.mean) / s.deviation
	if math.IsNaN(value) || math.IsInf(value, 0) {
		return 0
	}
	return value
}
