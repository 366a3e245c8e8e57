package deflate

import "math/cmplx"

// What follows is the non-preemptive MMAP[K]/PH[K]/1 priority queue, exactly, by
// the matrix-analytic way of T. Takine (The nonpreemptive priority MAP/G/1 queue,
// Operations Research 47, 1999) in the domain of transforms. G. Horváth (Efficient
// analysis of the MMAP[K]/PH[K]/1 priority queue, EJOR 246, 2015; the model that
// section 4.3 of the thesis takes) describes the same amounts of work as fluids,
// with matrices over the phases of arrivals and services together; here matrices
// are over the phases of the arrivals only (squared in one place), since services
// enter by their transforms, so that jobs of a hundred stages cost no more than
// those of one. With one phase, Poisson arrivals, all of it comes down to the
// formulas of Cobham, and of Conway, Maxwell and Miller (Theory of Scheduling,
// 1967, section 8-6).
//
// The work before class k is what must be done before a job of k that comes now
// could begin if nothing else came: all work of k and the classes above, and the
// rest of a job below that runs.

// at is the transform of the distribution at a matrix: E[exp(x·Q)].
func (p Phases) at(exponent matrix) matrix {
	n, size := len(p.Begin), exponent.size
	values := make([]matrix, n)
	sum, begin := newMatrix(size), 0.0
	var rate float64
	var inverse matrix
	for i := n - 1; i >= 0; i-- {
		if out := p.out(i); out != rate { // stages of a job often have one rate
			left := diagonal(size, complex(out, 0))
			left.add(exponent, -1)
			rate, inverse = out, left.inverse()
		}
		value := diagonal(size, complex(p.Done[i], 0))
		for _, step := range p.Next[i] {
			value.add(values[step.To], complex(step.Rate, 0))
		}
		values[i] = inverse.times(value)
		if p.Begin[i] > 0 {
			sum.add(values[i], complex(p.Begin[i], 0))
			begin += p.Begin[i]
		}
	}
	sum.add(diagonal(size, 1), complex(1-begin, 0))
	return sum
}

// served are the transforms of a class's job at a matrix, by the phase that it
// comes in.
func (q *Queue) served(k int, exponent matrix) []matrix {
	list := make([]matrix, q.hidden.size)
	for i := range list {
		if i > 0 && len(q.classes[k].Service) == 1 {
			list[i] = list[0]
			continue
		}
		list[i] = q.alone[k][i].at(exponent)
	}
	return list
}

// mostPasses bounds the search for a fixed point.
const mostPasses = 10_000

// passage is the exponent Q of how the phases move while so much work is done, x,
// with all the work of the classes from one on that comes meanwhile: exp(x·Q) is
// the transform, at s, of how long that takes, by the phases before and after. It
// is the fixed point of Q = −s + D₀ + Σ D_j (below) + Σ D_j B_j(Q) (from there on).
func (q *Queue) passage(from int, s complex128) matrix {
	still := q.generator(0, from)
	still.add(diagonal(still.size, 1), -s)
	now := still
	if s == 0 {
		now = q.generator(0, len(q.marked)) // rows that add up to 0 stay so
	}
	if from == len(q.marked) {
		return now
	}
	for range mostPasses {
		next := still.clone()
		for j := from; j < len(q.marked); j++ {
			if q.classes[j].Standing == 0 {
				next.add(q.bringing(j, q.served(j, now)), 1)
			}
		}
		change := next.distance(now)
		if now = next; change < 1e-13 {
			break
		}
	}
	return now
}

// bringing is a class's marked moves, each with what its job brings.
func (q *Queue) bringing(k int, served []matrix) matrix {
	if len(q.classes[k].Service) == 1 {
		return q.marked[k].times(served[0])
	}
	n, sum := q.hidden.size, newMatrix(q.hidden.size)
	for i := range n {
		copy(sum.at[i*n:(i+1)*n], served[i].row(q.marked[k].at[i*n:(i+1)*n]))
	}
	return sum
}

// begin finds the phases in which there is no work, and those in which jobs of
// each class but the highest begin: those that leave the transform of the work
// before each class without a pole. What jobs below a class bring is taken as
// independent of the phase.
func (q *Queue) begin() {
	q.idle = make([]complex128, q.hidden.size)
	if q.classes[0].Standing == 0 {
		for i, share := range q.passage(0, 0).stationary() {
			q.idle[i] = share * complex(1-q.total, 0)
		}
	}
	// A standing class is asked for its own also where it is the only one.
	for k := 1; k < len(q.classes) || k == 1 && q.classes[0].Standing > 0; k++ {
		exponent := q.passage(k, 0)
		known := exponent.row(q.idle)
		for j := range k - 1 {
			for i, one := range q.leaving(j, exponent).row(q.starts[j]) {
				known[i] -= one
			}
		}
		weights := exponent.stationary()
		full := q.leaving(k-1, exponent)
		full.outer(ones(full.size), weights)
		for i := range known {
			known[i] += complex(q.rates[k-1], 0) * weights[i]
		}
		q.starts = append(q.starts, full.transposed().solve(known))
	}
}

// leaving is 1 − B(Q) of the class.
func (q *Queue) leaving(k int, exponent matrix) matrix {
	left := diagonal(exponent.size, 1)
	left.add(q.average[k].at(exponent), -1)
	return left
}

// balance is the system of equations for how the work u before a class is
// distributed, by phase, in the form of ∫ du_i(x) exp(x·Q) f for each phase i: one
// below the other. Its right side comes second.
func (q *Queue) balance(k int, exponent matrix, f []complex128) (system matrix, right []complex128) {
	m := exponent.size
	system, right = newMatrix(m*m), make([]complex128, m*m)
	still := q.generator(0, k)
	entry := func(i, a, of, b int, value complex128) { system.at[(i*m+a)*m*m+of*m+b] += value }
	for i := range m {
		for a := range m {
			for b := range m {
				entry(i, a, i, b, -exponent.at[a*m+b])
			}
			for of := range m {
				entry(i, a, of, a, still.at[of*m+i])
			}
		}
	}
	for j := k; j < len(q.classes); j++ {
		for of, served := range q.served(j, exponent) {
			for i := range m {
				for ab, value := range served.at {
					entry(i, ab/m, of, ab%m, q.marked[j].at[of*m+i]*value)
				}
			}
		}
	}
	passed := exponent.column(f)
	for i := range m {
		for a := range m {
			right[i*m+a] -= q.idle[i] * passed[a]
		}
	}
	for j := range k {
		for a, value := range q.leaving(j, exponent).column(f) {
			for i := range m {
				right[i*m+a] += q.starts[j][i] * value
			}
		}
	}
	return system, right
}

// response is the transform of a class's response time: of its waiting, for the
// work before it with all that comes meanwhile from the classes above, and of its
// running.
func (q *Queue) response(k int, s complex128) complex128 {
	m, exponent := q.hidden.size, q.passage(k+1, s)
	if standing := q.classes[k].Standing; standing > 0 {
		// Those before it, each with all of the higher classes that come meanwhile.
		passed, one := ones(m), q.average[k].at(exponent)
		for range standing {
			passed = one.column(passed)
		}
		return inner(q.starts[0], passed) / complex(q.rates[k], 0) * q.running[k][0].transform(s)
	}
	system, right := q.balance(k, exponent, ones(m))
	found, sum, run := system.solve(right), complex(0, 0), complex(0, 0)
	for i := range m {
		moves := q.marked[k].at[i*m : (i+1)*m]
		waited, comes := inner(moves, found[i*m:(i+1)*m]), q.phases[i]*inner(moves, ones(m))
		if cmplx.IsNaN(waited) || cmplx.IsInf(waited) {
			return 0
		}
		if i == 0 || len(q.classes[k].Service) > 1 {
			run = q.running[k][i].transform(s)
		}
		sum += run * (complex(1-q.waits[k], 0)*comes + complex(q.waits[k], 0)*waited)
	}
	return sum / complex(q.rates[k], 0)
}
