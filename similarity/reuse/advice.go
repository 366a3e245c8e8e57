// Package reuse answers: with which system configuration does a training go
// on, and why?
//
// It is the decision of Rocha's algorithm 5 (section 6.3.2), taken after every
// epoch: the epoch's profile is looked up among the known workloads
// (similarity); if it is like one of them, what was measured of that one counts
// as measured of this one; what is not known well enough is probed, one
// configuration an epoch (similarity/probing); the best stays.
//
// Two things differ from the thesis. Workloads are compared under equal
// configurations, so a trial need not spend its first epoch on the default one.
// And how many trials run beside each other is part of the configuration: a
// training that leaves cores to another one costs only its share of the time.
//
// The package is pure: it is given what is known and answers.
package reuse

import (
	"math"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// Bounds of what one piece of advice looks at, and of what it believes.
const (
	// MaxRuns is how many runs of known workloads are used at most, the newest.
	MaxRuns = 128
	// certain is the deviation of a logarithm below which a saving is told.
	certain = 0.15
)

// Situation is what the machine has for the trial.
type Situation struct {
	// Machine is how many cores it has, Cores how many the trial may use: those
	// it has and those that nobody uses.
	Machine, Cores int
	// Elastic says that what the trial leaves goes to other trials, Wanted that
	// some are waiting for it.
	Elastic, Wanted bool
}

// Question is what is known of a trial when one of its epochs has ended.
type Question struct {
	Settings  system.Settings
	Constants system.Configuration
	Situation Situation
	// Own is what this run showed before the epoch; Epoch is the epoch.
	Own   similarity.Record
	Epoch Epoch
	// Fresh is the ID of a new record, in case that the run has become another
	// workload.
	Fresh string
	// Held are knobs that cannot be switched before the command is started again.
	Held []string
	// Left is how many epochs this run has left.
	Left int
	// Before is with what the epoch was to run, and why. Usual is what is best for
	// most workloads; nil where that is not known.
	Before trial.Setting
	Usual  system.Configuration
}

// Answer is what follows from it.
type Answer struct {
	// Record is the run's record with the epoch in it; a new one when the run
	// has Drifted away from what it was.
	Record  similarity.Record
	Drifted bool
	Setting trial.Setting
	// Saved is what the epoch's configuration saved; nil where that is not known.
	Saved *trial.Saving
}

// After decides what follows an epoch.
func After(memory *similarity.Memory, q Question) Answer {
	var answer Answer
	own := q.Own
	if cell, known := cellOf(own, q.Epoch.Configuration); known && q.Epoch.Features != nil && cell.Profiles > 0 && memory.Drifted(cell, q.Epoch.Features) {
		own = similarity.Record{ID: q.Fresh, Machine: own.Machine}
		answer.Drifted = true
	}
	own.Updated = q.Epoch.At
	answer.Record = observe(own, q.Epoch)

	d := decide(memory, q, answer.Record)
	d.drifted = answer.Drifted
	answer.Setting = d.setting()
	answer.Saved = d.saved()
	return answer
}

// Resume is the configuration of a run that is started again: what is known of
// it and of runs like it decides, and where that is not enough, its next epoch is
// for measuring as well. Of the question's epoch only the neighbours are used.
func Resume(memory *similarity.Memory, q Question) trial.Setting {
	q.Held = nil
	profiles := 0
	for _, cell := range q.Own.Cells {
		if cell.Profiles > profiles || q.Epoch.Configuration == nil {
			profiles = cell.Profiles
			q.Epoch = Epoch{Configuration: cell.Configuration, Features: cell.Features, Neighbours: q.Epoch.Neighbours}
		}
	}
	d := decide(memory, q, q.Own)
	setting := d.setting()
	setting.Configuration = Fit(setting.Configuration, d.grid, q.Situation)
	return setting
}

// decide looks the epoch up for a run with the record.
func decide(memory *similarity.Memory, q Question, own similarity.Record) decision {
	d := decision{question: q, grid: q.Settings.Grid(q.Constants, q.Situation.Machine), seen: evidence{own: own}}
	if q.Epoch.Features != nil {
		d.match = memory.Match(q.Epoch.Configuration, q.Epoch.Features, own.ID)
	}
	if d.match.Similar {
		d.seen.known = d.match.Members
	}
	return d
}

// Start is the configuration of a trial that nothing is known of yet: the one
// that is best for most of the known workloads, else the default.
func Start(memory *similarity.Memory, settings system.Settings, constants system.Configuration, at Situation) trial.Setting {
	grid := settings.Grid(constants, at.Machine)
	standard := settings.Default(constants, at.Machine)
	seen := evidence{known: memory.Records()}
	observations := seen.observations(settings.Objective, grid)
	if runs := compared(observations); runs > 0 {
		d := decision{question: Question{Settings: settings, Constants: constants, Situation: at, Epoch: Epoch{Configuration: standard}}, grid: grid, seen: seen}
		candidates, best := d.best(observations)
		return trial.Setting{Configuration: candidates[best].Configuration, Phase: trial.Reused, Why: whyStart(candidates[best].Configuration, runs)}
	}
	return trial.Setting{Configuration: Fit(standard, grid, at), Phase: trial.Default, Why: "nothing is known yet of workloads on machines of this type"}
}

// Fit is the configuration, or, if it keeps more cores busy than there are for
// it, the most similar one of the grid that does not: the one that differs in
// the fewest knobs, and of those the one with the most cores.
func Fit(wanted system.Configuration, grid []system.Configuration, at Situation) system.Configuration {
	if wanted.Demand(at.Machine) <= at.Cores {
		return wanted
	}
	best, fewest, most := wanted, math.MaxInt, 0
	for _, one := range grid {
		demand := one.Demand(at.Machine)
		if demand > at.Cores {
			continue
		}
		differences := 0
		for name, value := range one {
			if wanted[name] != value {
				differences++
			}
		}
		if differences < fewest || differences == fewest && demand > most {
			best, fewest, most = one, differences, demand
		}
	}
	return best
}

func cellOf(record similarity.Record, configuration system.Configuration) (similarity.Cell, bool) {
	for _, cell := range record.Cells {
		if cell.Profiles > 0 && cell.Configuration.Equal(configuration) {
			return cell, true
		}
	}
	return similarity.Cell{}, false
}

// compared counts the runs that were timed under more than one configuration.
func compared(observations []probing.Observation) int {
	first, several := map[string]string{}, map[string]bool{}
	for _, one := range observations {
		key := one.Configuration.Key()
		if known, has := first[one.Run]; has && known != key {
			several[one.Run] = true
		}
		first[one.Run] = key
	}
	return len(several)
}
