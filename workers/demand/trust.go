package demand

import "math"

// Held is how what had been told of minutes held against what came.
type Held struct {
	// Minutes is how many had been told of.
	Minutes int
	// Covered is for each quantile the share of them whose demand was not above it,
	// Verdicts what follows from that.
	// Least and Most are what it is if half a GPU more or less is the same.
	Covered, Least, Most []float64
	Verdicts             []Verdict
	// Trust is the verdict on the whole.
	Trust Trust
}

// Verdict is about one quantile.
type Verdict string

// The verdicts.
const (
	Holds   Verdict = "holds"
	TooLow  Verdict = "too low"  // the demand was above it more often than it should have been
	TooHigh Verdict = "too high" // the demand was above it less often
)

// Trust is what a reader may make of forecasts.
type Trust string

// Kinds of trust.
const (
	Unsure     Trust = "unsure"     // too little was told to say anything
	Good       Trust = "good"       // all quantiles hold
	Optimistic Trust = "optimistic" // a high quantile is too low: more is wanted than is told
	Cautious   Trust = "cautious"   // high quantiles are too high: less is wanted than is told
	Uneven     Trust = "uneven"     // high quantiles hold, lower ones do not
)

const (
	// leastTold is how many minutes must have been told of for a verdict.
	leastTold = 100
	// high is from where on quantiles count as high: those that GPUs are kept awake
	// for.
	high = 0.9
	// sure is how many standard deviations a share may be off by chance: 99%, as many
	// quantiles are asked.
	sure = 2.58
	// half a GPU more or less is the same whole GPU.
	half = 0.5
)

// Judge compares the minutes with what had been told of them, at ascending
// quantiles.
//
// A quantile q holds if the share of minutes below it is not above q and the share
// not above it not below q, each but for chance. Both sides are asked since demand
// comes in whole GPUs: where it does not change, half of the minutes may be at the
// quantile itself. Chance is that of a binomial share of independent minutes; those
// told of from overlapping histories are not, so that only one in [Ahead] counts.
func Judge(minutes []Minute, quantiles []float64) Held {
	shares := func() []float64 { return make([]float64, len(quantiles)) }
	held := Held{Covered: shares(), Least: shares(), Most: shares(), Verdicts: make([]Verdict, len(quantiles))}
	for _, one := range minutes {
		if len(one.Told) != len(quantiles) {
			continue
		}
		held.Minutes++
		for i, demand := range one.Told {
			if one.Total() <= demand {
				held.Covered[i]++
			}
			if one.Total() < demand-half {
				held.Least[i]++
			}
			if one.Total() <= demand+half {
				held.Most[i]++
			}
		}
	}
	count := float64(max(1, held.Minutes))
	held.Trust = Good
	for i, q := range quantiles {
		for _, share := range [][]float64{held.Covered, held.Least, held.Most} {
			share[i] /= count
		}
		chance := sure * math.Sqrt(q*(1-q)/max(1, count/Ahead))
		switch {
		case held.Most[i]+chance < q:
			held.Verdicts[i] = TooLow
		case held.Least[i]-chance > q:
			held.Verdicts[i] = TooHigh
		default:
			held.Verdicts[i] = Holds
			continue
		}
		switch {
		case q < high && held.Trust == Good:
			held.Trust = Uneven
		case q >= high && held.Verdicts[i] == TooLow:
			held.Trust = Optimistic
		case q >= high && held.Trust != Optimistic:
			held.Trust = Cautious
		}
	}
	if held.Minutes < leastTold {
		held.Trust = Unsure
	}
	return held
}
