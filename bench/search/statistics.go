package main

import (
	"cmp"
	"math"
	"math/rand/v2"
	"slices"
	"strconv"
)

func mean(values []float64) float64 {
	sum := 0.0
	for _, v := range values {
		sum += v
	}
	return sum / float64(len(values))
}

// band is the 95% confidence band of the mean, by the bootstrap's percentiles:
// of 2,000 draws of as many values with replacement, the same at every call.
func band(values []float64) (low, high float64) {
	const draws = 2000
	if len(values) == 0 {
		return math.NaN(), math.NaN()
	}
	r := rand.New(rand.NewPCG(1, uint64(len(values))))
	means := make([]float64, draws)
	for i := range means {
		for range values {
			means[i] += values[r.IntN(len(values))] / float64(len(values))
		}
	}
	slices.Sort(means)
	return means[draws/40], means[draws-1-draws/40]
}

// holm corrects p-values for their number (Holm 1979): the smallest times all
// of them, the next times one fewer, and none below one before it.
func holm(chances []float64) []float64 {
	order := make([]int, len(chances))
	for i := range order {
		order[i] = i
	}
	slices.SortStableFunc(order, func(a, b int) int { return cmp.Compare(chances[a], chances[b]) })
	corrected := make([]float64, len(chances))
	least := 0.0
	for i, at := range order {
		least = max(least, min(1, chances[at]*float64(len(chances)-i)))
		corrected[at] = least
	}
	return corrected
}

// ranks gives the smallest value rank 1; equal values share the mean of theirs.
func ranks(values []float64) []float64 {
	order := make([]int, len(values))
	for i := range order {
		order[i] = i
	}
	slices.SortFunc(order, func(a, b int) int { return cmp.Compare(values[a], values[b]) })
	result := make([]float64, len(values))
	for first := 0; first < len(order); {
		last := first
		for last+1 < len(order) && values[order[last+1]] == values[order[first]] {
			last++
		}
		for i := first; i <= last; i++ {
			result[order[i]] = float64(first+last)/2 + 1
		}
		first = last + 1
	}
	return result
}

// exactUpTo is the number of differences up to which Wilcoxon's distribution
// is counted out.
const exactUpTo = 40

// wilcoxon is the two-sided p-value of Wilcoxon's signed-rank test (1945) that
// the differences are symmetric around 0. Differences of 0 are left out, equal
// ones share their ranks. Of up to 40 differences all assignments of signs are
// counted; beyond, the sum of ranks is taken as normal, corrected for ties and
// continuity. Without any difference it is 1.
func wilcoxon(differences []float64) float64 {
	var sizes, signs []float64
	for _, d := range differences {
		if d != 0 {
			sizes, signs = append(sizes, math.Abs(d)), append(signs, d)
		}
	}
	if len(sizes) == 0 {
		return 1
	}
	rank := ranks(sizes)
	positive, total := 0.0, 0.0
	for i, r := range rank {
		total += r
		if signs[i] > 0 {
			positive += r
		}
	}
	smaller := min(positive, total-positive)
	if len(rank) <= exactUpTo {
		return min(1, 2*tail(rank, smaller))
	}
	squares := 0.0
	for _, r := range rank {
		squares += r * r // with ties shared, this is the corrected variance
	}
	z := (total/2 - smaller - 0.5) / math.Sqrt(squares/4)
	return min(1, math.Erfc(z/math.Sqrt2))
}

// tail is the share of all assignments of signs in which the positive ranks sum
// up to at most the sum. Shared ranks are halves, so twice a rank is whole.
func tail(rank []float64, sum float64) float64 {
	chance := []float64{1} // by twice the sum
	for _, r := range rank {
		step := int(math.Round(2 * r))
		next := make([]float64, len(chance)+step)
		for twice, p := range chance {
			next[twice] += p / 2
			next[twice+step] += p / 2
		}
		chance = next
	}
	p := 0.0
	for twice := 0; twice <= int(math.Round(2*sum)); twice++ {
		p += chance[twice]
	}
	return p
}

// draws is what runs on several tasks share: with one seed a method draws the
// same first configurations on every task of one space.
type draws struct {
	space string
	seed  uint64
}

// spaces has the space of each table, by the table's name.
func spaces(tables []*table) map[string]string {
	found := map[string]string{}
	for _, t := range tables {
		for _, p := range t.definition.Space.Parameters {
			found[t.name] += p.Name + " " + strconv.FormatFloat(p.Low, 'g', -1, 64) + " " + strconv.FormatFloat(p.High, 'g', -1, 64) + "\n"
		}
	}
	return found
}

// differences are of pairs of runs, in order, by the draws that the pairs share.
type differences struct {
	order []draws
	pairs map[draws][]float64
}

func (d *differences) add(at draws, difference float64) {
	if d.pairs == nil {
		d.pairs = map[draws][]float64{}
	}
	if _, known := d.pairs[at]; !known {
		d.order = append(d.order, at)
	}
	d.pairs[at] = append(d.pairs[at], difference)
}

// chance is Wilcoxon's p-value that there is no difference, of the means of
// pairs that share their draws. single takes every pair for one by itself: where
// tasks share draws, it is too small.
func (d *differences) chance() (clustered, single float64) {
	var all []float64
	for _, at := range d.order {
		all = append(all, d.pairs[at]...)
	}
	return wilcoxon(d.means()), wilcoxon(all)
}

// means are those of the pairs that share their draws.
func (d *differences) means() (means []float64) {
	for _, at := range d.order {
		means = append(means, mean(d.pairs[at]))
	}
	return means
}
