package main

import (
	"cmp"
	"math"
	"slices"
)

// quartiles are of a list that need not be sorted, interpolated linearly.
type quartiles struct{ low, median, high float64 }

func quartilesOf(values []float64) quartiles {
	sorted := slices.Sorted(slices.Values(values))
	at := func(q float64) float64 {
		place := q * float64(len(sorted)-1)
		below := int(place)
		above := min(below+1, len(sorted)-1)
		return sorted[below] + (place-float64(below))*(sorted[above]-sorted[below])
	}
	return quartiles{at(0.25), at(0.5), at(0.75)}
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
