package space

import (
	"math"
	"strconv"
)

// scale maps a float or an int parameter to [0, 1] and back.
//
// A parameter with a lattice (every int, and a float with a step) divides the
// unit interval into one bin for each value: equal bins on a linear scale, and
// bins that meet half-way between neighbouring logarithms on a log scale. A
// uniform draw so gives every value of a linear int the same chance, the two
// ends included.
type scale struct {
	low, high, step float64
	log, integer    bool
	count           float64 // values on the lattice, 0 when continuous
	from, width     float64 // the axis that [0, 1] is stretched over
}

func newScale(p Parameter) scale {
	// Adding 0 turns -0 into 0: values compare by their bits.
	s := scale{low: p.Low + 0, high: p.High + 0, step: p.Step, log: p.Log, integer: p.Type == IntType}
	if s.integer && s.step == 0 {
		s.step = 1
	}
	if s.step > 0 {
		// The tolerance keeps 0 to 0.3 in steps of 0.1 at four values.
		s.count = math.Floor((s.high-s.low)/s.step+1e-9) + 1
	}
	switch {
	case s.count > 0 && !s.log:
		s.from, s.width = -0.5, s.count
	case s.count == 1:
		s.from, s.width = math.Log(s.low)-0.5, 1
	case s.count > 1:
		first, second := math.Log(s.low), math.Log(s.at(1))
		last, before := math.Log(s.at(s.count-1)), math.Log(s.at(s.count-2))
		s.from = first - (second-first)/2
		s.width = last + (last-before)/2 - s.from
	case s.log:
		s.from, s.width = math.Log(s.low), math.Log(s.high)-math.Log(s.low)
	default:
		s.from, s.width = s.low, s.high-s.low
	}
	return s
}

// at is the lattice's value with the index.
func (s scale) at(i float64) float64 {
	if i <= 0 {
		return s.low
	}
	v := s.low + i*s.step
	if !s.integer {
		// Fifteen digits hide the noise of the multiplication: 0.3, not
		// 0.30000000000000004.
		if short, err := strconv.ParseFloat(strconv.FormatFloat(v, 'g', 15, 64), 64); err == nil {
			v = short
		}
	}
	return min(max(v, s.low), s.high)
}

// nearest is the index of the lattice's value closest to v.
func (s scale) nearest(v float64) float64 {
	return min(max(math.Round((v-s.low)/s.step), 0), s.count-1)
}

// onLattice reports whether v is a value of the lattice, up to rounding.
func (s scale) onLattice(v float64) bool {
	if s.count == 0 {
		return true
	}
	return math.Abs(s.at(s.nearest(v))-v) <= 1e-9*s.step
}

// decode returns the value at u in [0, 1]; beyond it the ends count.
func (s scale) decode(u float64) float64 {
	u = min(max(u, 0), 1)
	switch {
	case s.count > 0 && s.log:
		return s.at(s.nearestLog(s.from + u*s.width))
	case s.count > 0:
		return s.at(min(math.Floor(u*s.count), s.count-1))
	case u == 0:
		return s.low
	case u == 1:
		return s.high
	case s.log:
		return min(max(math.Exp(s.from+u*s.width), s.low), s.high)
	}
	return min(max(s.from+u*s.width, s.low), s.high) + 0
}

// share is the interval of [0, 1] that decodes to the same value as u.
func (s scale) share(u float64) (low, high float64, ok bool) {
	switch {
	case s.count == 0:
		return 0, 1, false
	case !s.log:
		i := min(math.Floor(u*s.count), s.count-1)
		return i / s.count, (i + 1) / s.count, true
	}
	i, low, high := s.nearestLog(s.from+u*s.width), 0.0, 1.0
	middle := func(i float64) float64 {
		return ((math.Log(s.at(i))+math.Log(s.at(i+1)))/2 - s.from) / s.width
	}
	if i > 0 {
		low = middle(i - 1)
	}
	if i < s.count-1 {
		high = middle(i)
	}
	return low, high, true
}

// nearestLog is the index of the lattice's value whose logarithm is closest to t.
func (s scale) nearestLog(t float64) float64 {
	i := min(max(math.Floor((math.Exp(t)-s.low)/s.step), 0), s.count-1)
	if i+1 < s.count && math.Log(s.at(i+1))-t < t-math.Log(s.at(i)) {
		return i + 1
	}
	return i
}

// encode is decode's inverse: a lattice's value becomes a point inside its bin.
func (s scale) encode(v float64) float64 {
	t := v
	switch {
	case s.log:
		t = math.Log(v)
	case s.count > 0:
		t = s.nearest(v)
	}
	return min(max((t-s.from)/s.width, 0), 1)
}

// spread returns up to n points of [0, 1] whose values are different and
// evenly spaced on the scale, both ends included; one point is the middle. A
// lattice of at most n values is returned whole.
func (s scale) spread(n int) []float64 {
	if s.count > 0 && s.count <= float64(n) {
		points := make([]float64, int(s.count))
		for i := range points {
			points[i] = s.encode(s.at(float64(i)))
		}
		return points
	}
	if n == 1 {
		return []float64{0.5}
	}
	first, last := 0.0, 1.0
	if s.count > 0 {
		first, last = s.encode(s.low), s.encode(s.at(s.count-1))
	}
	var points []float64
	previous := math.NaN()
	for i := range n {
		u := first + (last-first)*float64(i)/float64(n-1)
		// On a log lattice neighbours at the low end may be the same value.
		if v := s.decode(u); v != previous {
			points, previous = append(points, u), v
		}
	}
	return points
}

// value wraps a number in the parameter's type.
func (s scale) value(v float64) Value {
	if s.integer {
		return Int(int64(v))
	}
	return Float(v)
}
