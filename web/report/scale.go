package report

import (
	"math"
	"slices"
	"strconv"
)

// scale maps values to places on a drawing.
type scale struct {
	low, high float64 // values
	from, to  float64 // places
	log       bool
	seconds   bool // ticks are round in seconds, minutes, hours or days
}

// at is the place of a value; values outside are put at the end they are beyond.
func (s scale) at(value float64) float64 {
	low, high := s.low, s.high
	if s.log {
		low, high, value = math.Log(low), math.Log(high), math.Log(value)
	}
	if high == low {
		return (s.from + s.to) / 2
	}
	part := min(max((value-low)/(high-low), 0), 1)
	return s.from + part*(s.to-s.from)
}

// inside reports whether the value is on the scale.
func (s scale) inside(value float64) bool { return value >= s.low && value <= s.high }

// ticks are about so many round values on the scale.
func (s scale) ticks(about int) []float64 {
	if s.log {
		return logTicks(s.low, s.high, about)
	}
	if s.seconds {
		return timeTicks(s.low, s.high, about)
	}
	return roundTicks(s.low, s.high, about)
}

// timeTicks are times that clocks show.
func timeTicks(low, high float64, about int) []float64 {
	const minute, hour, day = 60.0, 3600.0, 86400.0
	for _, step := range []float64{1, 2, 5, 10, 15, 30, minute, 2 * minute, 5 * minute, 10 * minute, 15 * minute, 30 * minute, hour, 2 * hour, 3 * hour, 6 * hour, 12 * hour, day} {
		if (high-low)/step <= float64(about) {
			if step == 1 {
				break // fractions of a second are round numbers
			}
			var list []float64
			for at := math.Ceil(low/step) * step; at <= high; at += step {
				list = append(list, at)
			}
			return list
		}
	}
	if high-low > day {
		days := roundTicks(low/day, high/day, about)
		for i := range days {
			days[i] *= day
		}
		return days
	}
	return roundTicks(low, high, about)
}

func roundTicks(low, high float64, about int) []float64 {
	if !(high > low) {
		return []float64{low}
	}
	step := math.Pow(10, math.Floor(math.Log10((high-low)/float64(about))))
	for _, factor := range []float64{1, 2, 5, 10} {
		if (high-low)/(step*factor) <= float64(about) {
			step *= factor
			break
		}
	}
	var list []float64
	for i := math.Ceil(low/step - 1e-9); i*step <= high+step*1e-9 && len(list) < 100; i++ {
		list = append(list, i*step)
	}
	return list
}

func logTicks(low, high float64, about int) []float64 {
	first, last := math.Ceil(math.Log10(low)-1e-9), math.Floor(math.Log10(high)+1e-9)
	every := max(1, math.Ceil((last-first+1)/float64(about)))
	var list []float64
	for exponent := first; exponent <= last; exponent += every {
		list = append(list, math.Pow(10, exponent))
	}
	if len(list) < 2 {
		return []float64{low, high}
	}
	return list
}

// tick is a value beside an axis.
func tick(value float64) string {
	if value == 0 {
		return "0" // and never -0
	}
	short := strconv.FormatFloat(value, 'g', 4, 64)
	if size := math.Abs(value); size >= 1e-4 && size < 1e6 {
		if rounded, err := strconv.ParseFloat(short, 64); err == nil {
			return strconv.FormatFloat(rounded, 'f', -1, 64)
		}
	}
	return short
}

// fairRange is where nearly all of the values are, with a margin, and how many
// are outside: one diverged training must not flatten the others. kept is a
// value that is always inside; NaN for none.
func fairRange(values []float64, kept float64) (low, high float64, outside int) {
	finite := slices.DeleteFunc(slices.Clone(values), func(v float64) bool { return math.IsNaN(v) || math.IsInf(v, 0) })
	if len(finite) == 0 {
		return 0, 1, len(values)
	}
	slices.Sort(finite)
	low, high = finite[0], finite[len(finite)-1]
	first, third := finite[len(finite)/4], finite[len(finite)*3/4]
	if spread := third - first; spread > 0 {
		low, high = max(low, first-4*spread), min(high, third+4*spread)
	}
	if !math.IsNaN(kept) && !math.IsInf(kept, 0) {
		low, high = min(low, kept), max(high, kept)
	}
	for _, value := range values {
		if !(value >= low && value <= high) {
			outside++
		}
	}
	margin := (high - low) * 0.05
	if margin == 0 {
		margin = max(math.Abs(high)*0.05, 1e-9)
	}
	return low - margin, high + margin, outside
}

// evenly are so many of the items at most, evenly drawn, with the last.
func evenly[T any](items []T, most int) []T {
	if len(items) <= most {
		return items
	}
	drawn := make([]T, 0, most)
	for i := range most {
		drawn = append(drawn, items[(i+1)*len(items)/most-1])
	}
	return drawn
}
