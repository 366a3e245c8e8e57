package surrogate

import "github.com/tandem-tune/tandem/study/space"

const (
	// slopeTrust is how much the slope between two rungs is held to 1, in the
	// unit of observations times variance.
	slopeTrust = 0.3
	mostSlope  = 3.0
	// changeScale is the variance expected of what one rung adds to the one below.
	changeScale = 0.25
	// changeObservations bounds the observations that scale and noise of such
	// a change are fitted to.
	changeObservations = 50
)

// Level is what was measured at one rung.
type Level struct {
	Points [][]float64
	Values []float64
}

// Ladder is a chain of processes: a rung's function is the one below, times a
// slope, plus a shift, plus a process of its own (Kennedy and O'Hagan 2000; one
// rung after the other as by Le Gratiet and Garnier 2014). The slope is by
// regression on the trials that have a value above. That only good trials get
// there does not mislead it, because it asks what became of those, given what
// they were below.
type Ladder struct {
	rungs []step
}

type step struct {
	slope, shift float64
	process      *Process
}

// NewLadder conditions a ladder on what was measured, cheapest rung first. The
// parameters are those of the lowest rung; the lengths hold for all. It keeps
// the points.
func NewLadder(dimensions []space.Dimension, p Parameters, levels []Level) *Ladder {
	l := &Ladder{rungs: []step{{slope: 1, process: New(dimensions, p, levels[0].Points, levels[0].Values)}}}
	for _, level := range levels[1:] {
		below := make([]float64, len(level.Points))
		for i, point := range level.Points {
			below[i], _ = l.Predict(point)
		}
		slope, shift := regress(below, level.Values)
		rest := make([]float64, len(below))
		for i, value := range level.Values {
			rest[i] = value - shift - slope*below[i]
		}
		given := Parameters{Lengths: p.Lengths, Scale: changeScale}
		changed := fitScale(dimensions, given, sparse(Level{level.Points, rest}, changeObservations))
		l.rungs = append(l.rungs, step{slope, shift, New(dimensions, changed, level.Points, rest)})
	}
	return l
}

// regress returns the line through the values, its slope held to 1.
func regress(x, y []float64) (slope, shift float64) {
	n, meanX, meanY := float64(len(x)), 0.0, 0.0
	for i := range x {
		meanX += x[i] / n
		meanY += y[i] / n
	}
	together, square := slopeTrust, slopeTrust
	for i := range x {
		together += (x[i] - meanX) * (y[i] - meanY)
		square += (x[i] - meanX) * (x[i] - meanX)
	}
	slope = min(max(together/square, 0), mostSlope)
	return slope, meanY - slope*meanX
}

// sparse returns at most as many observations, evenly spread.
func sparse(level Level, most int) Level {
	n := len(level.Points)
	if n <= most {
		return level
	}
	var few Level
	for i := range most {
		at := i * n / most
		few.Points, few.Values = append(few.Points, level.Points[at]), append(few.Values, level.Values[at])
	}
	return few
}

// Predict returns mean and variance of the highest rung's function at a masked
// point.
func (l *Ladder) Predict(point []float64) (mean, variance float64) {
	for _, s := range l.rungs {
		m, v := s.process.Predict(point)
		mean, variance = s.shift+s.slope*mean+m, s.slope*s.slope*variance+v
	}
	return mean, variance
}

// Believe conditions every rung on its mean at the point, as if it had been
// measured there. Forget takes all of these back.
func (l *Ladder) Believe(point []float64) {
	for i := range l.rungs {
		l.rungs[i].process.Believe(point)
	}
}

// Believed is a mark to go back to with Forget.
func (l *Ladder) Believed() []int {
	mark := make([]int, len(l.rungs))
	for i, s := range l.rungs {
		mark[i] = s.process.Len()
	}
	return mark
}

// Forget takes back what was believed since the mark.
func (l *Ladder) Forget(mark []int) {
	for i, n := range mark {
		l.rungs[i].process.Forget(n)
	}
}
