package probing

import "github.com/tandem-tune/tandem/internal/regression"

// doubt is one epoch that might have been disturbed: what would change if it had
// not been measured. It is the only one of its run under its configuration.
type doubt struct {
	at int // the point it was measured at
	// shared has, for each belief, its posterior covariance with the difference
	// between the observation and the others of its run.
	shared []float64
	// gain times shared is how much a belief changes, pull how much of the
	// variance comes back.
	gain, pull float64
}

// doubts are those about the single epochs at points with few others, for
// beliefs in their order. Taking an observation out of its run is a change of
// rank one of the precision.
func (m *Model) doubts(beliefs []belief) []doubt {
	var all []doubt
	for _, r := range m.runs {
		if len(r.parts) < 2 {
			continue
		}
		for i, one := range r.parts {
			if one.epochs > 1 || m.epochs[one.at] > mostEpochs {
				continue
			}
			others, level := r.level(i)
			direction := make([]float64, len(m.points))
			for j, other := range r.parts {
				if j == i {
					direction[one.at]++
				} else {
					direction[other.at] -= other.weight / others
				}
			}
			strength := 1 / (1/one.weight + 1/others)
			if d, ok := m.without(direction, one.cost-level, strength, beliefs); ok {
				d.at = one.at
				all = append(all, d)
			}
		}
	}
	return all
}

// without is the doubt about an observation of the direction, with that value
// and precision.
func (m *Model) without(direction []float64, value, strength float64, beliefs []belief) (doubt, bool) {
	prior := times(m.before, direction) // prior covariances of the points with the direction
	solved := times(m.core, prior)
	variance := regression.Dot(prior, direction) - regression.Dot(prior, solved)
	left := 1 - strength*variance
	if left < 1e-9 {
		return doubt{}, false
	}
	d := doubt{
		gain: strength * (regression.Dot(prior, m.posterior.mean) - value) / left,
		pull: strength / left,
	}
	for _, b := range beliefs {
		d.shared = append(d.shared, regression.Dot(b.shared, direction)-regression.Dot(b.shared, solved))
	}
	return d, true
}
