package placement

import (
	"math"
	"slices"
)

// Accuracy is how well the models predict the tasks of a type: each was judged by
// what was predicted before it was learned from.
type Accuracy struct {
	// Observations is how many tasks were seen, beside probes; Learned is how many
	// of them taught anything.
	Observations, Learned int
	// Judged is how many of the newest tasks the errors are of, Metered how many of
	// these have joules. Seconds and Joules are the medians of their relative
	// errors; 0 where none was judged.
	Judged, Metered int
	Seconds, Joules float64
}

// remembered is how many of the newest errors tell how good a model is.
const remembered = 64

// accuracy keeps the newest errors.
type accuracy struct {
	seen, learned   int
	seconds, joules []float64
}

// judge notes how far off a prediction was. Both lists go on together: joules
// that are not known are NaN.
func (a *accuracy) judge(predicted, took Prediction) {
	joules := math.NaN()
	if predicted.Joules > 0 && took.Joules > 0 {
		joules = math.Abs(predicted.Joules/took.Joules - 1)
	}
	a.seconds = append(a.seconds, math.Abs(predicted.Seconds/took.Seconds-1))
	a.joules = append(a.joules, joules)
	if over := len(a.seconds) - remembered; over > 0 {
		a.seconds, a.joules = slices.Delete(a.seconds, 0, over), slices.Delete(a.joules, 0, over)
	}
}

// Accuracy says how well tasks on the type are predicted; false where nothing of
// the type was observed.
func (m *Models) Accuracy(kind string) (Accuracy, bool) {
	one, known := m.kinds[kind]
	if !known {
		return Accuracy{}, false
	}
	metered := slices.DeleteFunc(slices.Clone(one.past.joules), math.IsNaN)
	return Accuracy{
		Observations: one.past.seen, Learned: one.past.learned, Judged: len(one.past.seconds), Metered: len(metered),
		Seconds: median(slices.Clone(one.past.seconds)), Joules: median(metered),
	}, true
}

// median sorts the values; 0 for none.
func median(values []float64) float64 {
	if len(values) == 0 {
		return 0
	}
	slices.Sort(values)
	middle := len(values) / 2
	if len(values)%2 == 1 {
		return values[middle]
	}
	return (values[middle-1] + values[middle]) / 2
}
