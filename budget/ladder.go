package budget

import "math"

// halfDecimal is half of the last decimal a data fraction keeps. A user who
// writes 0.333333 or 0.166667 means a third or a sixth: lengths are counted as
// if the minimum were smaller by this much, or its steps larger.
const halfDecimal = 0.5e-6

// Ladder returns the rungs, the cheapest first; the settings' zero fields take
// their defaults. The first rung has the minima, the top one the maxima of the
// axes that the policy lets grow; an axis that does not grow stays at its
// maximum.
//
// Under geometric growth the axis with the larger ratio of maximum to minimum
// decides the length: log_eta ratio, rounded as the settings say, and one more
// rung; two if that is less but something grows. Both axes then grow by an equal
// factor from rung to rung, each with its own, so that they set out and arrive
// together.
// Under linear growth iteration i (from 1) has min(max, i × min) on each axis,
// until both are at their maximum (algorithm 6).
//
// Epochs are rounded to whole numbers and data fractions to six decimals, and
// of neighbouring rungs that are then equal one stays. Settings that pass
// Validate have at most MaxRungs rungs; others are cut there.
func (s Settings) Ladder() []Rung {
	s = s.WithDefaults()
	budgets := s.geometric
	if s.Growth == Linear {
		budgets = s.linear
	}
	var rungs []Rung
	for _, b := range budgets() {
		last := len(rungs) - 1
		if last >= 0 && rungs[last].Budget == b {
			continue
		}
		rungs = append(rungs, Rung{
			Index:       last + 1,
			Budget:      b,
			FromScratch: last >= 0 && b.Epochs <= rungs[last].Budget.Epochs && !b.Measured(),
		})
	}
	return rungs
}

// ends returns the budgets of the first and of the top rung.
func (s Settings) ends() (first, top Budget) {
	first = Budget{Epochs: s.Epochs.Min, DataFraction: rounded(s.DataFraction.Min)}
	top = Budget{Epochs: s.Epochs.Max, DataFraction: rounded(s.DataFraction.Max)}
	switch s.Policy {
	case Epochs:
		first.DataFraction = top.DataFraction
	case Dataset:
		first.Epochs = top.Epochs
	case Seconds, Joules:
		first.Epochs, first.DataFraction = top.Epochs, top.DataFraction
		first.setAmount(s.Policy, s.amount().Min)
		top.setAmount(s.Policy, s.amount().Max)
	}
	return first, top
}

// amount bounds what a measured policy's rungs are made of.
func (s Settings) amount() AmountRange {
	if s.Policy == Joules {
		return s.Joules
	}
	return s.Seconds
}

func (b *Budget) setAmount(policy Policy, amount float64) {
	if policy == Joules {
		b.Joules = amount
	} else {
		b.Seconds = amount
	}
}

func (s Settings) geometric() []Budget {
	first, top := s.ends()
	if first == top {
		return []Budget{top}
	}
	steps := max(s.steps(float64(first.Epochs), float64(top.Epochs)), s.steps(first.DataFraction-halfDecimal, top.DataFraction))
	if s.Policy.Measured() {
		steps = s.steps(s.amount().Min, s.amount().Max*(1+1e-9))
	}
	steps = min(max(steps, 1), MaxRungs-1)
	budgets := make([]Budget, steps+1)
	for i := range budgets {
		share := float64(i) / float64(steps)
		epochs := between(float64(first.Epochs), float64(top.Epochs), share)
		budgets[i] = Budget{
			Epochs:       int(math.Round(epochs)),
			DataFraction: rounded(between(first.DataFraction, top.DataFraction, share)),
		}
		if s.Policy.Measured() {
			budgets[i].setAmount(s.Policy, rounded(between(s.amount().Min, s.amount().Max, share)))
		}
	}
	return budgets
}

// steps is how often low can be multiplied by eta without passing high. A
// logarithm of 27 to base 3 may come out below 3. To the nearest number it may
// pass high by less than the root of eta: all is squared, and takes half as many.
func (s Settings) steps(low, high float64) int {
	half := 1
	if s.Rounding == Nearest {
		low, high, half = low*low, high*high*float64(s.Eta), 2
	}
	steps := 0
	for ; steps < half*MaxRungs && s.Eta > 1 && low > 0 && low*float64(s.Eta) <= high; steps++ {
		low *= float64(s.Eta)
	}
	return steps / half
}

// between interpolates geometrically.
func between(low, high, share float64) float64 {
	return min(max(low*math.Pow(high/low, share), low), high)
}

func (s Settings) linear() []Budget {
	first, top := s.ends()
	var budgets []Budget
	for i := 1; i < MaxRungs; i++ {
		next := Budget{
			Epochs:       min(top.Epochs, i*first.Epochs),
			DataFraction: min(top.DataFraction, rounded(float64(i)*first.DataFraction)),
		}
		if float64(i)*(first.DataFraction+halfDecimal) >= top.DataFraction {
			next.DataFraction = top.DataFraction
		}
		if s.Policy.Measured() {
			next = top
			next.setAmount(s.Policy, min(s.amount().Max, rounded(float64(i)*s.amount().Min)))
		}
		if next == top {
			break
		}
		budgets = append(budgets, next)
	}
	return append(budgets, top)
}

// iterations is how many rungs linear growth needs, without a bound.
func (s Settings) iterations() int {
	first, top := s.ends()
	if s.Policy.Measured() {
		return int(min(math.Ceil(s.amount().Max/s.amount().Min*(1-1e-9)), math.MaxInt32))
	}
	epochs := (top.Epochs + first.Epochs - 1) / first.Epochs
	data := math.Ceil(top.DataFraction / (first.DataFraction + halfDecimal))
	return max(epochs, int(data))
}

func rounded(fraction float64) float64 { return math.Round(fraction*1e6) / 1e6 }
