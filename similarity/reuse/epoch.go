package reuse

import (
	"iter"
	"maps"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// Epoch is one epoch of a run.
type Epoch struct {
	At            time.Time
	Configuration system.Configuration
	// Neighbours is how many other trials the machine ran meanwhile.
	Neighbours int
	// Alone says that it ran none at any time of the epoch.
	Alone bool
	// First says that it is the first one after a start, and warms up. Timed says
	// that its time is that of training alone: of a first one that is known only
	// where the script says when its training begins.
	First, Timed bool
	// Loads says that its process loaded code for the configuration: it is not evidence.
	Loads bool
	// Seconds and Joules are what an epoch over the whole data would have taken.
	Seconds, Joules float64
	// Features are those of its profile; nil when it has none of the training
	// alone.
	Features map[string]float64
}

// entered is the record with what its process has after the epoch, and the epoch as far
// as it is evidence: one that loads code says nothing of its configuration.
func entered(record similarity.Record, epoch Epoch, code system.Configuration) (similarity.Record, Epoch) {
	if len(code) == 0 {
		return record, epoch
	}
	process := record.Process
	switch {
	case epoch.First:
		process = nil
	case process == nil: // of a run that began under an earlier version
		process = &similarity.Process{Loaded: []system.Configuration{code}}
	}
	epoch.Loads = !process.Holds(code)
	epoch.Timed = epoch.Timed && !epoch.Loads
	record.Process, epoch.Features = process.Trained(code, epoch.Features)
	return record, epoch
}

// least keeps logarithms finite.
const least = 1e-9

// observe returns the record with the epoch in it.
func observe(record similarity.Record, epoch Epoch) similarity.Record {
	record.Cells = slices.Clone(record.Cells)
	at := slices.IndexFunc(record.Cells, func(cell similarity.Cell) bool {
		return cell.Neighbours == epoch.Neighbours && cell.Configuration.Equal(epoch.Configuration)
	})
	if at < 0 {
		if len(record.Cells) == system.MaxConfigurations {
			return record
		}
		at = len(record.Cells)
		record.Cells = append(record.Cells, similarity.Cell{Configuration: epoch.Configuration, Neighbours: epoch.Neighbours})
	}
	cell := record.Cells[at]
	if epoch.Timed && epoch.Seconds > 0 {
		seconds, joules := math.Log(max(least, epoch.Seconds)), math.Log(max(least, epoch.Joules))
		if epoch.First {
			cell.Firsts++
			cell.FirstLogSeconds += (seconds - cell.FirstLogSeconds) / float64(cell.Firsts)
			cell.FirstLogJoules += (joules - cell.FirstLogJoules) / float64(cell.Firsts)
		} else {
			cell = timed(cell, seconds, joules)
		}
	}
	if epoch.Features != nil {
		cell.Profiles++
		if cell.Profiles == 1 {
			cell.Features = maps.Clone(epoch.Features)
		} else {
			cell.Features = averaged(cell.Features, epoch.Features, cell.Profiles)
		}
	}
	record.Cells[at] = cell
	return record
}

// timed adds a time to the cell's mean and variance (Welford).
func timed(cell similarity.Cell, seconds, joules float64) similarity.Cell {
	squares := cell.Variance * float64(max(0, cell.Epochs-1))
	cell.Epochs++
	n := float64(cell.Epochs)
	difference := seconds - cell.LogSeconds
	cell.LogSeconds += difference / n
	cell.LogJoules += (joules - cell.LogJoules) / n
	if cell.Epochs > 1 {
		cell.Variance = (squares + difference*(seconds-cell.LogSeconds)) / (n - 1)
	}
	return cell
}

// averaged takes another epoch into the means of the features both have.
func averaged(means, features map[string]float64, n int) map[string]float64 {
	result := make(map[string]float64, len(means))
	for name, mean := range means {
		if value, has := features[name]; has {
			result[name] = mean + (value-mean)/float64(n)
		}
	}
	return result
}

// Standard deviations, of natural logarithms, by which the ratios of costs in other
// runs may differ from this one's, at least.
const (
	kinDeviation      = 0.015 // of the study or the script
	similarDeviation  = 0.03
	argumentDeviation = 0.2 // of the script with other fixed parameters
)

// evidence is what may be used to judge configurations.
type evidence struct {
	// own is the run's record, study and script have those of its kin, argued those
	// of its script with other fixed parameters, and similar those of similar workloads.
	own                            similarity.Record
	study, script, argued, similar []similarity.Record
}

// observations are the timed cells of the evidence on the grid. Other runs count as
// far as they agree with each other; those with other arguments say what to expect.
func (e evidence) observations(objective system.Objective, grid []system.Configuration) []probing.Observation {
	within := make(map[string]bool, len(grid))
	for _, configuration := range grid {
		within[configuration.Key()] = true
	}
	others := slices.Concat(e.timed(e.study, kinDeviation, objective, within), e.timed(e.script, kinDeviation, objective, within),
		e.timed(e.similar, similarDeviation, objective, within))
	apart := probing.Disagreement(others)
	for i := range others {
		others[i].Deviation = max(others[i].Deviation, apart)
	}
	return slices.Concat(observed(e.own, objective, within), others, e.timed(e.argued, argumentDeviation, objective, within))
}

// timed are the timed cells of other runs.
func (e evidence) timed(records []similarity.Record, deviation float64, objective system.Objective, within map[string]bool) []probing.Observation {
	var list []probing.Observation
	runs := 0
	for _, record := range slices.Backward(records) { // the newest first
		if runs >= MaxRuns || record.ID == e.own.ID || len(record.Cells) < 2 {
			continue
		}
		found := observed(record, objective, within)
		for j := range found {
			found[j].Deviation = deviation
		}
		if len(found) > 0 {
			runs++
		}
		list = append(list, found...)
	}
	return list
}

// observed are the timed cells of a record within a grid.
func observed(record similarity.Record, objective system.Objective, within map[string]bool) []probing.Observation {
	var list []probing.Observation
	for _, cell := range record.Cells {
		if !within[cell.Configuration.Key()] {
			continue
		}
		later := probing.Observation{Run: record.ID, Configuration: cell.Configuration, Neighbours: cell.Neighbours,
			LogCost: cell.LogSeconds, Epochs: cell.Epochs, Variance: cell.Variance}
		first := probing.Observation{Run: record.ID, Configuration: cell.Configuration, Neighbours: cell.Neighbours,
			First: true, LogCost: cell.FirstLogSeconds, Epochs: cell.Firsts}
		if objective == system.Joules {
			later.LogCost, first.LogCost = cell.LogJoules, cell.FirstLogJoules
		}
		for _, one := range []probing.Observation{later, first} {
			if one.Epochs > 0 {
				list = append(list, one)
			}
		}
	}
	return list
}

// level is the nearest evidence of a configuration: runs that were timed under it and
// another one.
func (e evidence) level(configuration system.Configuration) trial.Phase {
	tells := func(records []similarity.Record) bool {
		return slices.ContainsFunc(records, func(record similarity.Record) bool {
			return record.ID != e.own.ID && record.Compares() && timedUnder(record)[configuration.Key()]
		})
	}
	switch {
	case tells(e.study):
		return trial.Study
	case tells(e.script), severalTimed(e.script) > 0 && severalTimed(e.study) == 0:
		return trial.Script
	case severalTimed(e.study) > 0:
		return trial.Study
	case severalTimed(e.similar) == 0 && severalTimed(e.argued) > 0:
		return trial.Script
	}
	return trial.Similar
}

// kin yields the run's own record, and those of its study and script.
func (e evidence) kin() iter.Seq[similarity.Record] {
	return func(yield func(similarity.Record) bool) {
		if !yield(e.own) {
			return
		}
		for _, list := range [][]similarity.Record{e.study, e.script} {
			for _, record := range list {
				if !yield(record) {
					return
				}
			}
		}
	}
}

// severalTimed counts the records that were timed under more than one configuration.
func severalTimed(records []similarity.Record) int {
	count := 0
	for _, record := range records {
		if record.Compares() {
			count++
		}
	}
	return count
}
