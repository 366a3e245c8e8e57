package tuning

import (
	"fmt"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Space is what may be chosen: all combinations of the values. Each list
// ascends; an empty one leaves the parameter as it is, but for the batch, which
// is then 1.
type Space struct {
	BatchSizes []int     `json:"batch_sizes"`
	Cores      []int     `json:"cores,omitempty"`
	CPUHertz   []float64 `json:"cpu_hertz,omitempty"`
}

// Range returns the whole numbers from low to high, as of batch sizes 1 to 100
// (section 7.5.2).
func Range(low, high int) []int {
	var values []int
	for v := low; v <= high; v++ {
		values = append(values, v)
	}
	return values
}

// maxValues bounds each list.
const maxValues = 1024

// axis is one parameter with its values, ascending.
type axis struct {
	name   string
	values []float64
	set    func(*Configuration, float64)
}

// axes are the parameters that have values.
func (s Space) axes() []axis {
	all := []axis{
		{"batch_sizes", floats(s.BatchSizes), func(c *Configuration, v float64) { c.BatchSize = int(v) }},
		{"cores", floats(s.Cores), func(c *Configuration, v float64) { c.Cores = int(v) }},
		{"cpu_hertz", s.CPUHertz, func(c *Configuration, v float64) { c.CPUHertz = v }},
	}
	return slices.DeleteFunc(all, func(a axis) bool { return len(a.values) == 0 })
}

func floats(values []int) []float64 {
	list := make([]float64, len(values))
	for i, v := range values {
		list[i] = float64(v)
	}
	return list
}

// thinned are the axes with at most so many configurations: every second value of the
// longest ones is left out, but neither of its ends, until that is so.
func thinned(axes []axis, most int) []axis {
	for {
		size, longest := 1, 0
		for i, a := range axes {
			size *= len(a.values)
			if len(a.values) > len(axes[longest].values) {
				longest = i
			}
		}
		values := axes[longest].values
		if size <= most || len(values) < 3 {
			return axes
		}
		var left []float64
		for i, v := range values {
			if i%2 == 0 || i == len(values)-1 {
				left = append(left, v)
			}
		}
		axes[longest].values = left
	}
}

// at is the configuration with the value at the place of each axis.
func at(axes []axis, point []int) Configuration {
	c := Configuration{BatchSize: 1}
	for i, a := range axes {
		a.set(&c, a.values[point[i]])
	}
	return c
}

func (s Space) faults(path string) []problem.Field {
	var faults []problem.Field
	for _, a := range s.axes() {
		if len(a.values) > maxValues {
			faults = append(faults, problem.Field{Path: path + "." + a.name, Message: fmt.Sprintf("must have at most %d values", maxValues), Value: len(a.values)})
		}
		for i, v := range a.values {
			field := problem.Field{Path: fmt.Sprintf("%s.%s[%d]", path, a.name, i), Value: fmt.Sprint(v)}
			switch {
			case !(v > 0) || math.IsInf(v, 1):
				field.Message = "must be a number above 0"
			case i > 0 && v <= a.values[i-1]:
				field.Message = "must be larger than the one before it"
			default:
				continue
			}
			faults = append(faults, field)
			break
		}
	}
	return faults
}
