package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"testing"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
)

func TestRanks(t *testing.T) {
	for name, c := range map[string]struct{ values, want []float64 }{
		"nothing":   {nil, []float64{}},
		"different": {[]float64{30, 10, 20}, []float64{3, 1, 2}},
		"shared":    {[]float64{1, 0, 1, 0, 1}, []float64{4, 1.5, 4, 1.5, 4}},
		"all equal": {[]float64{7, 7}, []float64{1.5, 1.5}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := ranks(c.values); !slices.Equal(got, c.want) {
				t.Errorf("the ranks of %v are %v, want %v", c.values, got, c.want)
			}
		})
	}
}

// The bootstrap's band is about that of the normal distribution: for 30 zeros
// and ones in turn, 0.5 and 1.96 deviations of 0.5/√30 on either side.
func TestBand(t *testing.T) {
	var values []float64
	for i := range 30 {
		values = append(values, float64(i%2))
	}
	low, high := band(values)
	if want := 1.96 * 0.5 / math.Sqrt(30); math.Abs(0.5-want-low) > 0.04 || math.Abs(0.5+want-high) > 0.04 {
		t.Errorf("the band is %v to %v, want 0.5 ± %v", low, high, want)
	}
	if low, high := band([]float64{3, 3}); low != 3 || high != 3 {
		t.Errorf("of equal values it is %v to %v", low, high)
	}
	if low, _ := band(nil); !math.IsNaN(low) {
		t.Errorf("of no values it begins at %v", low)
	}
}

func TestHolm(t *testing.T) {
	for name, c := range map[string]struct{ chances, want []float64 }{
		"nothing":        {nil, []float64{}},
		"one":            {[]float64{0.25}, []float64{0.25}},
		"in their order": {[]float64{0.5, 0.125, 0.25}, []float64{0.5, 0.375, 0.5}},
		"at most 1":      {[]float64{0.75, 0.75}, []float64{1, 1}},
	} {
		if got := holm(c.chances); !slices.Equal(got, c.want) {
			t.Errorf("%s: %v became %v, want %v", name, c.chances, got, c.want)
		}
	}
}

// The expected values are SciPy's (1.17, zero_method "wilcox"; with a
// correction for continuity where it is normal), those of ties with few
// differences come from trying out all signs.
func TestWilcoxon(t *testing.T) {
	var spread, tied []float64
	for i := range 60 {
		spread = append(spread, math.Round(1000*(float64(i%7)-2.5+float64(i*37%11)/10))/1000)
		tied = append(tied, float64(i*5%9)-3)
	}
	for name, c := range map[string]struct {
		differences []float64
		want        float64
	}{
		"no difference":              {[]float64{0, 0}, 1},
		"one":                        {[]float64{2}, 1},
		"five of five":               {[]float64{1.1, 2.2, 3.3, 4.4, 5.5}, 0.0625},
		"five of five, the other":    {[]float64{-1.1, -2.2, -3.3, -4.4, -5.5}, 0.0625},
		"fifteen":                    {[]float64{6, -8, 14, 16, 23, 24, 28, 29, 41, -48, 49, 56, 60, -67, 75}, 0.05535888671875},
		"ten":                        {[]float64{1, -2, 3, 4, -5, 6, 7, 8, 9, 10}, 0.037109375},
		"few with ties and zeros":    {[]float64{1, 1, -1, 2, 2, 3, 0, 3}, 0.0625},
		"two that cancel each other": {[]float64{0.5, -0.5}, 1},
		"many":                       {spread, 0.003747484939737746},
		"many with ties and zeros":   {tied, 0.007610445987459744},
	} {
		t.Run(name, func(t *testing.T) {
			if got := wilcoxon(c.differences); math.Abs(got-c.want) > 1e-9 {
				t.Errorf("p = %v, want %v", got, c.want)
			}
		})
	}
}

// studies makes up runs of two methods on eight tasks of one space and a task of
// another, with 12 seeds. What a method draws with a seed tells on all tasks of
// a space, and each task adds a little by itself. The first is better by effect.
func studies(r *rand.Rand, effect float64) report {
	var made report
	for task := range 9 {
		low := float64(task / 8)
		made.tables = append(made.tables, &table{name: fmt.Sprint("task", task), definition: definition.Definition{Space: space.Space{
			Parameters: []space.Parameter{{Name: "x", Type: space.FloatType, Low: low, High: 2}},
		}}})
	}
	for seed := range uint64(12) {
		for method, better := range map[string]float64{"a": effect, "b": 0} {
			shared := r.NormFloat64()
			for task, one := range made.tables {
				if task == 8 {
					shared = r.NormFloat64()
				}
				regret := 5 + shared + 0.5*r.NormFloat64() - better
				made.runs = append(made.runs, finished{method: method, problem: one.name, seed: seed, budget: 1, marks: []mark{{1, 1, regret}}})
			}
		}
	}
	return made
}

// A placebo: of two equal methods, one in twenty comparisons may find the other
// better. Taking every run for one by itself finds it in about half.
func TestMethodsThatAreEqualAreHardlyEverToldApart(t *testing.T) {
	const placebos = 1000
	r := rand.New(rand.NewPCG(1, 2))
	clustered, single, found := 0, 0, 0
	for range placebos {
		c := studies(r, 0).compare("a", "b", atTheEnd)
		if c.clustered < 0.05 {
			clustered++
		}
		if c.single < 0.05 {
			single++
		}
		if studies(r, 1).compare("a", "b", atTheEnd).clustered < 0.05 {
			found++
		}
	}
	t.Logf("of %d placebos %d are rejected, by run %d; of as many effects %d are found", placebos, clustered, single, found)
	if clustered < placebos*3/100 || clustered > placebos*7/100 {
		t.Errorf("%d of %d placebos are rejected at 5%%", clustered, placebos)
	}
	if single < placebos/5 {
		t.Errorf("by run only %d of %d placebos are rejected: the runs share too little for this test to show anything", single, placebos)
	}
	if found < placebos*8/10 {
		t.Errorf("an effect of a deviation is found in %d of %d", found, placebos)
	}
}
