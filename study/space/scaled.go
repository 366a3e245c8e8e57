package space

import "math"

// Scaled returns the coordinate of factor times the value at u, within the
// parameter's bounds. The dimension is a continuous one. A value on a lattice
// moves by one place at least, and 0 moves by the same share of the range.
func (c *Cube) Scaled(dimension int, u, factor float64) float64 {
	s := c.scales[dimension]
	before := s.decode(u)
	after := before * factor
	if before == 0 {
		after = (factor - 1) * (s.high - s.low)
	}
	direction := math.Copysign(1, after-before)
	after = min(max(after, s.low), s.high)
	if s.count > 0 {
		from, to := s.nearest(before), s.nearest(after)
		if to == from {
			to = min(max(from+direction, 0), s.count-1)
		}
		after = s.at(to)
	}
	return s.encode(after)
}
