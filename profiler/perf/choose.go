package perf

import (
	"cmp"
	"fmt"
	"maps"
	"math"
	"slices"
)

// DefaultCorrelation is from which |r| on two events are taken to tell the same.
const DefaultCorrelation = 0.98

// leastEpochs is how many epochs two events must have in common to be compared:
// of fewer, some pair of sixty events agrees by chance.
const leastEpochs = 8

// hardlyChanged is the standard deviation of the logarithm below which an event
// is taken to be constant: a tenth of a percent.
const hardlyChanged = 1e-3

// Choice is which events are worth a counter, by what was recorded.
type Choice struct {
	Epochs    int     `json:"epochs"`
	Threshold float64 `json:"threshold"`
	// PerCPUSecond says that rates were taken per second of CPU time; else per
	// second of wall-clock time.
	PerCPUSecond bool `json:"per_cpu_second"`
	// Groups have an event to count each, and those that it stands for.
	Groups []EventGroup `json:"groups"`
	// Constant are events that hardly ever changed: they tell no epoch from
	// another.
	Constant []string `json:"constant"`
	// Rare are events that were counted in too few epochs to say; they are kept.
	Rare []string `json:"rare"`
}

// EventGroup is events that rise and fall together.
type EventGroup struct {
	Representative string       `json:"representative"`
	Others         []Correlated `json:"others"`
}

// Correlated is an event with its correlation to the representative of its group.
type Correlated struct {
	Name string  `json:"name"`
	R    float64 `json:"r"`
}

// Events are the names worth a counter, in the order of the tables.
func (c Choice) Events() []string {
	names := slices.Clone(c.Rare)
	for _, group := range c.Groups {
		names = append(names, group.Representative)
	}
	return inOrder(names, tableOrder())
}

// Choose looks at what was counted in recorded epochs, per second by name,
// and finds the events that others stand for, so that the few counters of a
// processor are not shared with them (Rocha, section 6.3.3). Two events tell the
// same when the logarithms of their rates correlate with an |r| of at least the
// threshold, above 0 and at most 1. Where all epochs have a task-clock, rates are
// per second of CPU time: else all events of a busy epoch would seem alike.
//
// Each event joins the first representative that it correlates with, so every
// event that is left out has one that is counted and close to it. Instructions
// and cycles, which have counters of their own on most processors, and
// task-clock are always counted; the kernel's software events, which need none,
// come before the others.
func Choose(epochs []map[string]float64, threshold float64) (Choice, error) {
	switch {
	case !(threshold > 0 && threshold <= 1):
		return Choice{}, fmt.Errorf("the threshold of a correlation is above 0 and at most 1, not %g", threshold)
	case len(epochs) < leastEpochs:
		few := fmt.Sprintf("%d epochs", len(epochs))
		if len(epochs) == 1 {
			few = "1 epoch"
		}
		return Choice{}, fmt.Errorf("%s of counted events, at least %d are needed to compare them: record more, best of several trainings", few, leastEpochs)
	}
	c := Choice{Epochs: len(epochs), Threshold: threshold, Groups: []EventGroup{}, Constant: []string{}, Rare: []string{}}
	c.PerCPUSecond = !slices.ContainsFunc(epochs, func(epoch map[string]float64) bool { return !(epoch[clockEvent] > 0) })
	columns := map[string][]float64{}
	for at, epoch := range epochs {
		for name, rate := range epoch {
			if c.PerCPUSecond && name != clockEvent {
				rate *= 1e9 / epoch[clockEvent]
			}
			if columns[name] == nil {
				columns[name] = slices.Repeat([]float64{math.NaN()}, len(epochs))
			}
			columns[name][at] = math.Log1p(rate)
		}
	}
	for _, name := range inOrder(slices.Collect(maps.Keys(columns)), preference()) {
		c.place(name, columns)
	}
	return c, nil
}

// clockEvent counts nanoseconds of CPU time.
const clockEvent = "task-clock"

// always reports whether an event takes no counter that another could have.
func always(name string) bool {
	return name == "instructions" || name == "cpu-cycles" || name == clockEvent
}

// place puts an event into a group, or makes it the first of a new one.
func (c *Choice) place(name string, columns map[string][]float64) {
	own := columns[name]
	known := slices.DeleteFunc(slices.Clone(own), math.IsNaN)
	switch {
	case always(name):
	case len(known) < leastEpochs:
		c.Rare = append(c.Rare, name)
		return
	case spread(known) < hardlyChanged:
		c.Constant = append(c.Constant, name)
		return
	default:
		for i, group := range c.Groups {
			if r, comparable := correlation(own, columns[group.Representative]); comparable && math.Abs(r) >= c.Threshold {
				c.Groups[i].Others = append(c.Groups[i].Others, Correlated{name, r})
				return
			}
		}
	}
	c.Groups = append(c.Groups, EventGroup{Representative: name, Others: []Correlated{}})
}

// spread is the standard deviation.
func spread(values []float64) float64 {
	mean, squares := 0.0, 0.0
	for _, value := range values {
		mean += value / float64(len(values))
	}
	for _, value := range values {
		squares += (value - mean) * (value - mean)
	}
	return math.Sqrt(squares / float64(len(values)))
}

// correlation is Pearson's, over the epochs that have both; it says nothing of
// too few of them, or where one hardly changed.
func correlation(a, b []float64) (r float64, known bool) {
	var left, right []float64
	for i := range a {
		if !math.IsNaN(a[i]) && !math.IsNaN(b[i]) {
			left, right = append(left, a[i]), append(right, b[i])
		}
	}
	if len(left) < leastEpochs || spread(left) < hardlyChanged || spread(right) < hardlyChanged {
		return 0, false
	}
	n := float64(len(left))
	meanLeft, meanRight, product := 0.0, 0.0, 0.0
	for i := range left {
		meanLeft += left[i] / n
		meanRight += right[i] / n
	}
	for i := range left {
		product += (left[i] - meanLeft) * (right[i] - meanRight) / n
	}
	return max(-1, min(1, product/(spread(left)*spread(right)))), true
}

// tableOrder is the place of each event that the kernel has a name for.
func tableOrder() map[string]int {
	order := map[string]int{}
	for i, event := range knownEvents() {
		order[event.Name] = i + 1
	}
	return order
}

// preference is which event stands for others: lower ones first.
func preference() map[string]int {
	order := tableOrder()
	for _, event := range knownEvents() {
		if event.Kind == Software {
			order[event.Name] -= len(order) // no counter is needed for it
		}
		if always(event.Name) {
			order[event.Name] -= 3 * len(order)
		}
	}
	return order
}

// inOrder sorts names by their places, those without one last and by name.
func inOrder(names []string, places map[string]int) []string {
	slices.SortFunc(names, func(a, b string) int {
		first, firstKnown := places[a]
		second, secondKnown := places[b]
		switch {
		case firstKnown && secondKnown:
			return cmp.Compare(first, second)
		case firstKnown:
			return -1
		case secondKnown:
			return 1
		}
		return cmp.Compare(a, b)
	})
	return names
}
