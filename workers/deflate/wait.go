package deflate

// meanWait is how long a job of the class waits in the mean for one server that is
// as fast as all slots together.
//
// With u the work before the class, H the exponent of [Queue.passage] at 0, h its
// stationary row and q the derivative of what passes for a unit of work, what
// passes for x is x·hq + (exp(xH) − 1)(H − 1h)⁻¹q in the mean, by the phase at its
// beginning; u is averaged over that as jobs of the class meet it.
func (q *Queue) meanWait(k int) float64 {
	m, exponent := q.hidden.size, q.passage(k+1, 0)
	share := exponent.stationary()
	deviation := exponent.clone() // (H − 1h)⁻¹
	deviation.outer(scaled(ones(m), -1), share)
	deviation = deviation.inverse()
	passing := q.passing(k, deviation, share)
	bent := deviation.column(passing)

	work := q.meanWork(k)
	system, right := q.balance(k, exponent, bent)
	// The system has one solution too many: Σ hv is h·bent.
	total := inner(share, bent)
	for i := range m {
		for a := range m {
			for of := range m {
				for b := range m {
					system.at[(i*m+a)*m*m+of*m+b] += q.phases[i] * share[b]
				}
			}
			right[i*m+a] += q.phases[i] * total
		}
	}
	found, straight, sum := system.solve(right), inner(share, passing), complex(0, 0)
	for i := range m {
		moves := q.marked[k].at[i*m : (i+1)*m]
		sum += straight * work[i] * inner(moves, ones(m))
		for a, rate := range moves {
			sum += rate * (found[i*m+a] - q.phases[i]*bent[a])
		}
	}
	return real(sum) / q.rates[k]
}

// passing is how much time passes for a unit of work in the mean, by phase, with
// what comes meanwhile from the classes above: q = 1 + Σ D_j ∫∫ exp(tH)dt dB_j q.
func (q *Queue) passing(k int, deviation matrix, share []complex128) []complex128 {
	m, exponent := q.hidden.size, q.passage(k+1, 0)
	system := diagonal(m, 1)
	for j := k + 1; j < len(q.classes); j++ {
		for i, served := range q.served(j, exponent) {
			during := served.clone()
			during.add(diagonal(m, 1), -1)
			during = during.times(deviation)
			during.outer(scaled(ones(m), complex(q.first[j][i], 0)), share)
			row := during.row(q.marked[j].at[i*m : (i+1)*m])
			for a, value := range row {
				system.at[i*m+a] -= value
			}
		}
	}
	return system.solve(ones(m))
}

// meanWork is the mean of the work before the class, by phase: from the first two
// derivatives of its balance at 0.
func (q *Queue) meanWork(k int) []complex128 {
	m := q.hidden.size
	full := q.generator(0, len(q.marked))
	drift := ones(m) // of the work, by phase: 1 − Σ of what comes
	right := make([]complex128, m)
	for i := range m {
		right[i] = q.idle[i] - q.phases[i]
	}
	squares := 0.0
	for j, marked := range q.marked {
		if j < k {
			first, second := q.average[j].Moments()
			for i := range m {
				right[i] += q.starts[j][i] * complex(first, 0)
			}
			squares += q.rates[j] * second
			continue
		}
		for i := range m {
			moves := marked.at[i*m : (i+1)*m]
			drift[i] -= complex(q.first[j][i], 0) * inner(moves, ones(m))
			for of, rate := range moves {
				right[of] += q.phases[i] * rate * complex(q.first[j][i], 0)
			}
			squares += q.second[j][i] * real(q.phases[i]*inner(moves, ones(m)))
		}
	}
	// F″ is not the same in all phases: Σ π_i D_j(i,·)1 E[S²] is what was summed.
	full.outer(drift, q.phases)
	for i := range right {
		right[i] += complex(-squares/2, 0) * q.phases[i]
	}
	return scaled(full.transposed().solve(right), -1)
}

// scaled is the column times the factor.
func scaled(column []complex128, factor complex128) []complex128 {
	for i := range column {
		column[i] *= factor
	}
	return column
}

// pooled is what is waited in the mean in MAP/M/C, in parts of what is waited in
// the MAP/M/1 that is as fast as its slots together, both with the arrivals of all
// classes: beyond as many jobs as there are slots both are one matrix-geometric
// chain (M. Neuts, Matrix-Geometric Solutions in Stochastic Models, 1981, chapter
// 3), and below the levels are eliminated one by one.
func (q *Queue) pooled() float64 {
	m := q.hidden.size
	arriving := newMatrix(m)
	jobs := 0.0
	for k, marked := range q.marked {
		arriving.add(marked, 1)
		jobs += q.rates[k]
	}
	fast := jobs / q.total // jobs that all slots together end in a unit of time
	// G, and R from it.
	passed := newMatrix(m)
	now := q.generator(0, len(q.marked))
	for range mostPasses {
		left := diagonal(m, complex(fast, 0))
		left.add(now, -1)
		passed = scaledMatrix(left.inverse(), fast)
		next := q.hidden.clone()
		next.add(arriving.times(passed), 1)
		change := next.distance(now)
		if now = next; change < 1e-13 {
			break
		}
	}
	left := diagonal(m, complex(fast, 0))
	left.add(q.hidden, -1)
	left.add(arriving.times(passed), -1)
	rising := arriving.times(left.inverse())
	return q.queued(arriving, rising, fast, q.slots) / q.queued(arriving, rising, fast, 1)
}

// queued is how many jobs wait in the mean for so many slots which together end
// fast a unit of time.
func (q *Queue) queued(arriving, rising matrix, fast float64, slots int) float64 {
	m, each := q.hidden.size, fast/float64(slots)
	// Level n in parts of level n + 1.
	parts := make([]matrix, slots)
	below := newMatrix(m) // S·D₁ of the level below
	for n := range slots {
		left := diagonal(m, complex(float64(n)*each, 0))
		left.add(q.hidden, -1)
		left.add(below, -1)
		parts[n] = scaledMatrix(left.inverse(), float64(n+1)*each)
		below = parts[n].times(arriving)
	}
	// The level of as many jobs as slots, whose generator with all that is around it
	// is censored to itself.
	full := q.hidden.clone()
	full.add(diagonal(m, 1), complex(-fast, 0))
	full.add(below, 1)
	full.add(rising, complex(fast, 0))
	level := full.stationary()
	still := diagonal(m, 1)
	still.add(rising, -1)
	sums := still.inverse()
	waiting := real(inner(level, rising.times(sums.times(sums)).column(ones(m))))
	total := real(inner(level, sums.column(ones(m))))
	for n := slots - 1; n >= 0; n-- {
		level = parts[n].row(level)
		total += real(inner(level, ones(m)))
	}
	return waiting / total
}

func scaledMatrix(m matrix, factor float64) matrix {
	scaled(m.at, complex(factor, 0))
	return m
}
