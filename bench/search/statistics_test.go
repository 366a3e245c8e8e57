package main

import (
	"math"
	"slices"
	"testing"
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

func TestQuartiles(t *testing.T) {
	for name, c := range map[string]struct {
		values []float64
		want   quartiles
	}{
		"one":  {[]float64{3}, quartiles{3, 3, 3}},
		"four": {[]float64{4, 1, 3, 2}, quartiles{1.75, 2.5, 3.25}},
		"five": {[]float64{5, 4, 3, 2, 1}, quartiles{2, 3, 4}},
	} {
		t.Run(name, func(t *testing.T) {
			if got := quartilesOf(c.values); got != c.want {
				t.Errorf("the quartiles of %v are %v, want %v", c.values, got, c.want)
			}
		})
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
