package deflate

import "math"

// Within takes all responses for those of a span that begins with an idle engine,
// in seconds, in place of those of the long run: after a burst of hours a queue
// needs days to forget it, and no span that is looked at may be so long.
//
// The work before a class is taken as a Brownian motion that is reflected at 0, with
// the drift and the variance that the work of the class and of those above has in
// the long run; what it is in the mean of the span, in parts of the long run, is
// known in closed form (J. Abate and W. Whitt, Transient behavior of regulated
// Brownian motion I, Advances in Applied Probability 19, 1987, section 1: H₁). What
// is waited is taken to be in the same proportion.
func (q *Queue) Within(seconds float64) *Queue {
	within := *q
	within.waits = make([]float64, len(q.waits))
	work := 0.0
	for k := len(q.classes) - 1; k >= 0; k-- {
		work += q.load[k]
		within.waits[k] = q.waits[k]
		if variance := q.variance(k); variance > 0 && q.classes[k].Standing == 0 {
			within.waits[k] *= settled(seconds / q.unit * (1 - work) * (1 - work) / variance)
		}
	}
	return &within
}

// settled is the mean of H₁ from 0 to the time.
func settled(time float64) float64 {
	if time > 1000 {
		return 1
	}
	const steps = 200
	sum := 0.0
	for i := range steps {
		// Steps are short at first, where it rises like a root.
		u := (float64(i) + 0.5) / steps
		t := time * u * u
		root := math.Sqrt(t)
		rest := math.Erfc(root/math.Sqrt2) / 2
		sum += 2 * u / steps * (1 - 2*(1+t)*rest + 2*root*math.Exp(-t/2)/math.Sqrt(2*math.Pi))
	}
	return sum
}

// variance is by how much the work of a class and of those above varies in the long
// run, per unit of time (of M. Neuts's A versatile Markovian point process, Journal
// of Applied Probability 16, 1979, with jobs weighted by what they take).
func (q *Queue) variance(from int) float64 {
	m, squares := q.hidden.size, complex(0, 0)
	brings := newMatrix(m)
	for k := from; k < len(q.classes); k++ {
		for i := range m {
			for j := range m {
				rate := q.marked[k].at[i*m+j]
				brings.at[i*m+j] += rate * complex(q.first[k][i], 0)
				squares += q.phases[i] * rate * complex(q.second[k][i], 0)
			}
		}
	}
	// 2 π M (1π − D)⁻¹ M 1 − 2 (πM1)², with M what the moves bring.
	still := newMatrix(m)
	still.outer(ones(m), q.phases)
	still.add(q.generator(0, len(q.marked)), -1)
	all := brings.column(ones(m))
	mean := inner(q.phases, all)
	return real(squares + 2*inner(brings.row(q.phases), still.inverse().column(all)) - 2*mean*mean)
}
