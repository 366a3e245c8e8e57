package reuse

import (
	"cmp"
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// Parameters are the configuration that a run of the study searches with, by the ID of
// its record; nil where that is not known.
type Parameters func(record string) map[string]space.Value

const (
	// leastDivided is how many runs there must be before a parameter is said to divide
	// them, and leastSide how many on either side.
	leastDivided = 6
	leastSide    = 2
	// mistaken is the largest part of the mistakes without a division that one may make.
	mistaken = 3
)

// division is a parameter of the search that tells runs apart whose best system
// configurations differ: numbers from a bound on, or one word (Rocha, section 6.3.6,
// leaves similarity over hyperparameters to later work).
type division struct {
	name  string
	value space.Value
}

// holds reports whether a run is on the upper side.
func (d division) holds(parameters map[string]space.Value) bool {
	own, has := parameters[d.name]
	bound, numeric := d.value.Number()
	if number, ok := own.Number(); numeric && ok {
		return number >= bound
	}
	return has && own == d.value
}

func (d division) String() string {
	if _, numeric := d.value.Number(); numeric {
		return fmt.Sprintf("%s from %s on", d.name, d.value)
	}
	return fmt.Sprintf("%s=%s", d.name, d.value)
}

// divided are the records on the run's side of the parameter that tells best where
// other runs are best; all of them where none does.
func (d decision) divided(records []similarity.Record) (side []similarity.Record, by string) {
	own := d.parameters(d.seen.own.ID)
	if own == nil {
		return records, ""
	}
	found, ok := d.divide(records)
	if !ok {
		return records, ""
	}
	at := found.holds(own)
	side = slices.DeleteFunc(slices.Clone(records), func(r similarity.Record) bool {
		parameters := d.parameters(r.ID)
		return parameters == nil || found.holds(parameters) != at
	})
	by = "with " + found.String()
	if !at {
		by = "without " + found.String()
	}
	return side, by
}

func (d decision) parameters(record string) map[string]space.Value {
	if d.input.Parameters == nil {
		return nil
	}
	return d.input.Parameters(record)
}

// sample is a run that was timed under several configurations.
type sample struct {
	best       string // the key of its best one
	parameters map[string]space.Value
}

// divide finds the parameter and the value with the fewest mistakes, if they are few.
func (d decision) divide(records []similarity.Record) (best division, ok bool) {
	var samples []sample
	names := map[string]bool{}
	for _, one := range records {
		key, several := bestOf(one, d.input.Settings.Objective)
		if parameters := d.parameters(one.ID); several && parameters != nil {
			samples = append(samples, sample{key, parameters})
			for name := range parameters {
				names[name] = true
			}
		}
	}
	fewest := mistakes(samples) / mistaken
	if len(samples) < leastDivided || mistakes(samples) == 0 {
		return best, false
	}
	for _, name := range slices.Sorted(maps.Keys(names)) {
		for _, one := range samples {
			tried := division{name, one.parameters[name]}
			var above, below []sample
			for _, other := range samples {
				if tried.holds(other.parameters) {
					above = append(above, other)
				} else {
					below = append(below, other)
				}
			}
			if wrong := mistakes(above) + mistakes(below); len(above) >= leastSide && len(below) >= leastSide && (wrong < fewest || wrong == fewest && !ok) {
				best, fewest, ok = tried, wrong, true
			}
		}
	}
	return best, ok
}

// mistakes counts the runs whose best configuration is not that of most.
func mistakes(samples []sample) int {
	counts, most := map[string]int{}, 0
	for _, one := range samples {
		counts[one.best]++
		most = max(most, counts[one.best])
	}
	return len(samples) - most
}

// bestOf is the key of the configuration with the cheapest epochs of a run that was
// timed under several.
func bestOf(record similarity.Record, objective system.Objective) (key string, several bool) {
	cost := func(cell similarity.Cell) float64 {
		if objective == system.Joules {
			return cell.LogJoules
		}
		return cell.LogSeconds
	}
	timed := slices.DeleteFunc(slices.Clone(record.Cells), func(cell similarity.Cell) bool { return cell.Epochs == 0 })
	if len(timed) < 2 {
		return "", false
	}
	cheapest := slices.MinFunc(timed, func(a, b similarity.Cell) int { return cmp.Compare(cost(a), cost(b)) })
	return cheapest.Configuration.Key(), true
}
