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

// Situation is what the machine offers the trial.
type Situation struct {
	// Machine is the number of its cores. Cores counts those that the trial may
	// use: its own and the idle ones.
	Machine, Cores int
	// Elastic: cores that the trial leaves go to other trials. Wanted: some wait
	// for them.
	Elastic, Wanted bool
}

// Input is what is known of a trial when one of its epochs has ended.
type Input struct {
	Settings  system.Settings
	Constants system.Configuration
	Situation Situation
	// Record holds what this run measured before the epoch.
	Record similarity.Record
	Epoch  Epoch
	// NewRecord is the ID of the next record, used if the run has drifted into
	// another workload.
	NewRecord string
	// Held are knobs that cannot change until the command is started again.
	Held []string
	// Left is the number of epochs that this run has left.
	Left int
	// Planned is the setting that the epoch was to have.
	Planned trial.Setting
	// MachineBest is the best configuration for most workloads on this type of
	// machine; nil if unknown.
	MachineBest system.Configuration
}

// Result is the decision after an epoch.
type Result struct {
	// Record is the run's record with the epoch in it. It is a new one if the run
	// has Drifted.
	Record  similarity.Record
	Drifted bool
	Setting trial.Setting
	// Saved is what the epoch's configuration saved; nil if unknown.
	Saved *trial.Saving
}

// Decide chooses the system configuration after an epoch.
func Decide(memory *similarity.Memory, q Input) Result {
	var result Result
	own := q.Record
	if cell, known := cellOf(own, q.Epoch.Configuration); known && q.Epoch.Features != nil {
		odd := memory.Drifted(cell, q.Epoch.Features)
		switch {
		case odd && own.Odd:
			own = similarity.Record{ID: q.NewRecord, Machine: own.Machine}
			result.Drifted = true
		case odd: // chance, until the next one says the same: it counts for nothing
			q.Epoch.Features, q.Epoch.Timed = nil, false
		}
		own.Odd = odd && !result.Drifted
	}
	own.Updated = q.Epoch.At
	result.Record = observe(own, q.Epoch)
	if cell, known := cellOf(result.Record, q.Epoch.Configuration); known {
		q.Epoch.Features = cell.Features // a mean says more of the run than one epoch
	}

	d := newDecision(memory, q, result.Record)
	d.drifted = result.Drifted
	result.Setting = d.setting()
	result.Saved = d.saved()
	return result
}

// Resume is the configuration of a run that is started again: what is known of
// it and of runs like it decides, and where that is not enough, its next epoch is
// for measuring as well. It uses only the neighbours of the input's epoch.
func Resume(memory *similarity.Memory, q Input) trial.Setting {
	q.Held = nil
	profiles := 0
	for _, cell := range q.Record.Cells {
		if cell.Profiles > profiles || q.Epoch.Configuration == nil {
			profiles = cell.Profiles
			q.Epoch = Epoch{Configuration: cell.Configuration, Features: cell.Features, Neighbours: q.Epoch.Neighbours}
		}
	}
	d := newDecision(memory, q, q.Record)
	setting := d.setting()
	setting.Configuration = Fit(setting.Configuration, d.grid, q.Situation)
	return setting
}

// newDecision looks the epoch up for a run with the record.
func newDecision(memory *similarity.Memory, q Input, own similarity.Record) decision {
	d := decision{input: q, grid: q.Settings.Grid(q.Constants, q.Situation.Machine), seen: evidence{own: own}}
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
		d := decision{input: Input{Settings: settings, Constants: constants, Situation: at, Epoch: Epoch{Configuration: standard}}, grid: grid, seen: seen}
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
