package forecast

import "math"

const (
	// debtRate is by how much, in its logarithm, the aim's shortfall gets smaller for
	// each minute of debt: after 100 of them it is about a third. Of 0.0005 to 0.05 it was
	// chosen on the parts of two traces before the ones that are reported on.
	debtRate = 0.01
	// tightest bounds that: the aim's shortfall is never less than this share of
	// what is allowed. Beyond, a knob has nothing left to turn.
	tightest = 0.1
)

// Correction raises what a knob aims at by what it was seen to miss: what it was
// set on may have been easier than what it is turned for.
//
// It is the feedback of adaptive conformal inference (Gibbs and Candès, Adaptive
// conformal inference under distribution shift, NeurIPS 2021, equation 2): the level
// that is used moves after each outcome by what was missed less what may be. Three
// things differ. What is missed is a share of the demand instead of yes or no. The
// step is taken in the logarithm of the shortfall, so that one rate does for every
// performance and no aim reaches 1. And what was served beyond what is asked for is
// not saved up, as hours in which nothing changes would pay for a bad one. So, as in
// their proposition 4.1, what goes unserved in n minutes is on average at most the
// share that may, times 1 + [MostDebt]/n, unless the debt reached MostDebt.
//
// The zero value corrects nothing.
type Correction struct {
	// Debt is what went unserved beyond what may, in minutes: one is what may go
	// unserved in a minute of mean demand. From 0 to MostDebt.
	Debt float64
}

// MostDebt is the most that a [Correction] remembers, in minutes.
func MostDebt() float64 { return -math.Log(tightest) / debtRate }

// Aim is the performance to set a knob to for the one that is asked for, above 0
// and at most 1: never less than that.
func (c Correction) Aim(performance float64) float64 {
	return 1 - (1-performance)*math.Exp(-debtRate*c.Debt)
}

// Seen is the correction after a minute with such a demand, of which so much found
// a GPU awake; mean is the demand of a minute in the mean ([Knob.MeanDemand]), all
// in GPUs. For a performance of 1, or without a mean, there is nothing to correct.
func (c Correction) Seen(performance, demand, served, mean float64) Correction {
	allowed := (1 - performance) * mean
	if !(allowed > 0) {
		return c
	}
	unserved := max(0, demand-served)
	return Correction{Debt: min(max(0, c.Debt+(unserved-(1-performance)*demand)/allowed), MostDebt())}
}
