package sharing

import (
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/bench/pool/colocated"
)

// slices of a profile that ran alone.
const sliced = 32

// alone is the profile of a workload, with what it did at each time.
type alone struct {
	profile colocated.Profile
	series  []row
}

// newAlone makes a series a profile: what was used in equally long slices.
func newAlone(series []row) (alone, error) {
	if len(series) < 2 {
		return alone{}, fmt.Errorf("a series of %d rows", len(series))
	}
	last := series[len(series)-1]
	a := alone{profile: colocated.Profile{Seconds: last[0]}, series: series}
	for k := range sliced {
		from, to := last[0]*float64(k)/sliced, last[0]*float64(k+1)/sliced
		one := series[place(series, 0, (from+to)/2)]
		a.profile.Points = append(a.profile.Points, colocated.Point{
			Utilization: min(1, one[2]), MemoryBytes: 1e6 * max(0, one[3]), StepsASecond: (between(series, 0, 1, to) - between(series, 0, 1, from)) / (to - from),
		})
	}
	return a, nil
}

// place is the first row whose column has reached a value.
func place(series []row, column int, value float64) int {
	i, _ := slices.BinarySearchFunc(series, value, func(one row, at float64) int {
		if one[column] < at {
			return -1
		}
		return 1
	})
	return min(i, len(series)-1)
}

// between is a column where another one has a value, on a line between rows, the
// first of which follows zeros.
func between(series []row, by, column int, value float64) float64 {
	i := place(series, by, value)
	var before row
	if i > 0 {
		before = series[i-1]
	}
	if series[i][by] <= before[by] {
		return series[i][column]
	}
	return before[column] + (series[i][column]-before[column])*min(1, (value-before[by])/(series[i][by]-before[by]))
}

// readings are a series with its completion: when as much was done alone.
func (a alone) readings(series []row) []colocated.Reading {
	var list []colocated.Reading
	for i, one := range series {
		completion := min(1, between(a.series, 1, 0, one[1])/a.profile.Seconds)
		if n := len(list); n > 0 {
			if one[0] <= list[n-1].Seconds {
				continue
			}
			completion = max(completion, list[n-1].Completion)
		}
		if i == len(series)-1 {
			completion = 1
		}
		list = append(list, colocated.Reading{Seconds: one[0], Completion: completion, Utilization: min(1, one[2])})
	}
	return list
}

// recordedPair is a pair with its names.
type recordedPair struct {
	names [2]string
	colocated.Pair
}

// pairs are those of a recording. Of two runs alone, which are noise of the
// machine, the second is taken: it did what the pairs did.
func (r *recording) pairs() ([]recordedPair, map[string][]float64, error) {
	known, seconds := map[string]alone{}, map[string][]float64{}
	for _, one := range r.Alone {
		a, err := newAlone(one.Series)
		if err != nil {
			return nil, nil, fmt.Errorf("%s alone: %w", one.Workload, err)
		}
		known[one.Workload], seconds[one.Workload] = a, append(seconds[one.Workload], a.profile.Seconds)
	}
	var list []recordedPair
	for _, one := range r.Pairs {
		a, first := known[one.First]
		b, second := known[one.Second]
		if !first || !second {
			return nil, nil, fmt.Errorf("%s and %s ran together, but not alone", one.First, one.Second)
		}
		list = append(list, recordedPair{names: [2]string{one.First, one.Second}, Pair: colocated.Pair{
			Alone:    [2]colocated.Profile{a.profile, b.profile},
			Together: [2][]colocated.Reading{a.readings(one.FirstSeries), b.readings(one.SecondSeries)},
		}})
	}
	return list, seconds, nil
}
