package kde

import (
	"math"
	"math/rand/v2"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/study/space"
)

func anyDimension(t *rapid.T) space.Dimension {
	return rapid.SampledFrom([]space.Dimension{
		{Kind: space.Continuous},
		{Kind: space.Unordered, Choices: 1},
		{Kind: space.Unordered, Choices: 5},
		{Kind: space.Ordered, Choices: 1},
		{Kind: space.Ordered, Choices: 6},
	}).Draw(t, "dimension")
}

// lattice covers a dimension: every choice, or the middles of n cells; weight
// is the measure of one of them.
func lattice(d space.Dimension, n int) (points []float64, weight float64) {
	if d.Kind == space.Continuous {
		for i := range n {
			points = append(points, (float64(i)+0.5)/float64(n))
		}
		return points, 1 / float64(n)
	}
	for choice := range d.Choices {
		points = append(points, d.Coordinate(choice))
	}
	return points, 1
}

func (k *Density) at(point ...float64) float64 {
	sums := make([]float64, k.N)
	k.Kernels(point, sums)
	return math.Exp(LogMean(sums))
}

// A density integrates to one, over two dimensions of any kind, wherever its
// observations are and whichever parameters they lack.
func TestDensityIntegratesToOne(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		dimensions := []space.Dimension{anyDimension(t), anyDimension(t)}
		coordinate := rapid.OneOf(rapid.Just(math.NaN()), rapid.Float64Range(0, 1))
		points := rapid.SliceOfN(rapid.SliceOfN(coordinate, 2, 2), 1, 12).Draw(t, "points")
		var k Density
		k.Fit(dimensions, points)
		for d := range k.Bandwidth {
			// Narrow peaks would need a finer lattice than this test has time for.
			if dimensions[d].Kind == space.Continuous {
				k.Bandwidth[d] = max(k.Bandwidth[d], 0.02)
			}
		}
		k.Place(points)
		total := 0.0
		xs, dx := lattice(dimensions[0], 150)
		ys, dy := lattice(dimensions[1], 150)
		for _, x := range xs {
			for _, y := range ys {
				total += k.at(x, y) * dx * dy
			}
		}
		if math.Abs(total-1) > 0.01 {
			t.Fatalf("the density of %v integrates to %v", points, total)
		}
	})
}

// What is drawn from a density is spread as it says.
func TestDrawsFollowTheDensity(t *testing.T) {
	for _, d := range []space.Dimension{
		{Kind: space.Continuous}, {Kind: space.Unordered, Choices: 5}, {Kind: space.Ordered, Choices: 6},
	} {
		var k Density
		k.Fit([]space.Dimension{d}, [][]float64{{0.05}, {0.1}, {0.5}, {0.95}, {math.NaN()}})
		const cells, draws = 10, 100_000
		points, _ := lattice(d, cells)
		counts := make([]float64, len(points))
		r := rand.New(rand.NewPCG(1, 2))
		point := make([]float64, 1)
		for range draws {
			k.Draw(r, 1, point)
			counts[min(int(point[0]*float64(len(points))), len(points)-1)]++
		}
		for i, p := range points {
			want := k.at(p)
			if d.Kind == space.Continuous {
				want = 0
				for j := range 100 {
					want += k.at(p+(float64(j)-49.5)/1000) / 1000
				}
			}
			if got := counts[i] / draws; math.Abs(got-want) > 0.006 {
				t.Errorf("%+v: cell %d has %.4f of the draws, want %.4f", d, i, got, want)
			}
		}
	}
}

func TestBandwidths(t *testing.T) {
	continuous := space.Dimension{Kind: space.Continuous}
	binary := space.Dimension{Kind: space.Unordered, Choices: 2}
	ordered := space.Dimension{Kind: space.Ordered, Choices: 10}
	cases := []struct {
		name      string
		dimension space.Dimension
		column    []float64
		want      float64
	}{
		// 1.06 · 0.1 · 4^(-1/5)
		{"normal reference", continuous, []float64{0.4, 0.6, 0.4, 0.6}, 0.106 * math.Pow(4, -0.2)},
		{"equal observations", continuous, []float64{0.4, 0.4}, minBandwidth},
		{"one observation is as wide as a uniform one", continuous, []float64{0.4}, 1.06 / math.Sqrt(12)},
		{"a coin", binary, []float64{0, 1}, 1.06 * 0.5 * math.Pow(2, -0.2)},
		{"an unordered bandwidth does not depend on the numbering", space.Dimension{Kind: space.Unordered, Choices: 9}, []float64{0, 8}, 1.06 * 0.5 * math.Pow(2, -0.2)},
		{"equal ordered observations", ordered, []float64{3, 3, 3}, MinChoiceBandwidth},
	}
	for _, c := range cases {
		if got := bandwidth(c.dimension, c.column, 1); math.Abs(got-c.want) > 1e-12 {
			t.Errorf("%s: got %v, want %v", c.name, got, c.want)
		}
	}
	// The ordered kernel's λ gives back the standard deviation it was made for.
	column := []float64{1, 3, 5, 7}
	h := 1.06 * math.Sqrt(5) * math.Pow(4, -0.2)
	λ := bandwidth(ordered, column, 1)
	if got := math.Sqrt(λ*(1+λ)) / (1 - λ); math.Abs(got-h) > 1e-9 {
		t.Errorf("an ordered kernel of λ %v has the deviation %v, want %v", λ, got, h)
	}
}
