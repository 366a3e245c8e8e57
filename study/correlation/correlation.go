// Package correlation answers: how far can a cheap measurement be trusted to
// rank trials as a dearer one does?
//
// The trials that were measured at both are mostly those that were good at the
// cheap one, since only these went up. Among the best the ranks agree less than
// among all, so that what is seen understates the agreement ("restriction of
// range"). [Between] gives both: what is seen, and an estimate for all trials.
//
// The package is pure arithmetic: equal values give equal answers.
package correlation

import (
	"cmp"
	"math"
	"slices"
)

// Least is how many pairs an estimate needs: its error grows without bound
// towards 3.
const Least = 4

// Pair is what one trial scored with the cheaper and with the dearer budget;
// larger is better. NaN is worse than every number.
type Pair struct{ Lower, Upper float64 }

// Estimate is a rank correlation: 1 if both rank alike, 0 if one says nothing
// of the other, -1 if they rank the other way round.
type Estimate struct {
	// Pairs is how many trials were measured at both, All how many at the
	// cheaper one.
	Pairs, All int
	// Rho is Spearman's coefficient over the pairs. With a chance of about 95%
	// its true value among such trials is between Low and High (Fisher's
	// transformation with the error of Bonett and Wright, 2000).
	Rho, Low, High float64
	// Corrected, CorrectedLow and CorrectedHigh are estimates of the same for
	// all trials measured at the cheaper one, after Thorndike's correction for
	// direct selection (his case 2, 1949). It takes the ranks for those of two
	// jointly normal quantities, which is an assumption. The bounds do not
	// contain what is uncertain about it.
	Corrected, CorrectedLow, CorrectedHigh float64
}

// Between estimates the correlation. all has the scores of every trial measured
// with the cheaper budget, in any order. It answers false when there are fewer
// than [Least] pairs, or all of them are alike at one of the two.
func Between(all []float64, pairs []Pair) (Estimate, bool) {
	if len(pairs) < Least {
		return Estimate{}, false
	}
	lower, upper := make([]float64, len(pairs)), make([]float64, len(pairs))
	for i, pair := range pairs {
		lower[i], upper[i] = pair.Lower, pair.Upper
	}
	rho := Spearman(lower, upper)
	if math.IsNaN(rho) {
		return Estimate{}, false
	}
	e := Estimate{Pairs: len(pairs), All: len(all), Rho: rho}
	e.Low, e.High = interval(rho, len(pairs))
	ratio := spread(all, lower)
	e.Corrected, e.CorrectedLow, e.CorrectedHigh = corrected(rho, ratio), corrected(e.Low, ratio), corrected(e.High, ratio)
	return e, true
}

// Spearman is Pearson's correlation of the ranks, equal values sharing their
// mean rank (Spearman 1904). NaN ranks below every number. The answer is NaN
// when there are fewer than two values or one side is constant.
func Spearman(x, y []float64) float64 { return pearson(Ranks(x), Ranks(y)) }

// Ranks counts from 1, the smallest first, equal values sharing their mean rank.
func Ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	result := make([]float64, len(values))
	for from := 0; from < len(order); {
		to := from + 1
		for to < len(order) && cmp.Compare(values[order[from]], values[order[to]]) == 0 {
			to++
		}
		for _, i := range order[from:to] {
			result[i] = float64(from+to+1) / 2
		}
		from = to
	}
	return result
}

func pearson(x, y []float64) float64 {
	meanX, meanY := mean(x), mean(y)
	var xy, xx, yy float64
	for i := range x {
		dx, dy := x[i]-meanX, y[i]-meanY
		xy, xx, yy = xy+dx*dy, xx+dx*dx, yy+dy*dy
	}
	if xx == 0 || yy == 0 {
		return math.NaN()
	}
	return min(max(xy/math.Sqrt(xx*yy), -1), 1)
}

func mean(values []float64) float64 {
	sum := 0.0
	for _, value := range values {
		sum += value
	}
	return sum / float64(len(values))
}

// normal95 is the standard normal's 97.5% quantile.
const normal95 = 1.959963984540054

// interval is the 95% confidence interval of a Spearman coefficient. Few pairs often
// rank alike by chance: a coefficient of 1 is taken for the middle between it and the
// next smaller one that so many pairs can have.
func interval(rho float64, pairs int) (low, high float64) {
	n := float64(pairs)
	most := 1 - 6/(n*(n*n-1))
	inside := min(max(rho, -most), most)
	z, half := math.Atanh(inside), normal95*math.Sqrt((1+inside*inside/2)/(n-3))
	return min(rho, math.Tanh(z-half)), max(rho, math.Tanh(z+half))
}

// spread is by how much all of them are more spread than the chosen ones, as
// the ratio of standard deviations of their normal scores among all.
func spread(all, chosen []float64) float64 {
	sorted := slices.Clone(all)
	slices.Sort(sorted)
	score := func(value float64) float64 {
		from, _ := slices.BinarySearch(sorted, value)
		to := from
		for to < len(sorted) && cmp.Compare(sorted[to], value) == 0 {
			to++
		}
		// Blom's scores (1958), equal values in the middle of their places.
		share := (float64(from+to+1)/2 - 0.375) / (float64(len(sorted)) + 0.25)
		return math.Sqrt2 * math.Erfinv(2*share-1)
	}
	// The scores of all have a standard deviation of nearly 1.
	scores := make([]float64, len(chosen))
	for i, value := range chosen {
		scores[i] = score(value)
	}
	centre, variance := mean(scores), 0.0
	for _, one := range scores {
		variance += (one - centre) * (one - centre)
	}
	return 1 / math.Sqrt(variance/float64(len(scores)-1))
}

// corrected takes a coefficient among chosen trials to all of them.
func corrected(rho, spread float64) float64 {
	r := 2 * math.Sin(math.Pi*rho/6) // Pearson's, if both are normal
	r = spread * r / math.Sqrt(1+(spread*spread-1)*r*r)
	return 6 / math.Pi * math.Asin(min(max(r/2, -0.5), 0.5))
}
