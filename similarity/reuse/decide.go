// Package reuse answers: with which system configuration does a training go
// on, and why?
//
// It is the decision of Rocha's algorithm 5 (section 6.3.2), taken after every
// epoch: the epoch's profile is looked up among the known workloads
// (similarity); if it is like one of them, what was measured of that one counts
// as measured of this one; what is not known well enough is probed, one
// configuration an epoch (similarity/probing); the best stays.
//
// Nearer evidence comes first: what this study's trials measured, runs of the same
// script, runs of workloads with a similar profile, and, as a first guess, what was
// best for most workloads on the type of machine.
//
// Two more things differ from the thesis. Workloads are compared under equal
// configurations, so a trial need not spend its first epoch on the default one.
// And how many trials run beside each other is part of the configuration: a
// training that leaves cores to another one costs only its share of the time.
//
// The package is pure: it is given what is known and answers.
package reuse

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// Bounds of what one piece of advice looks at, and of what it believes.
const (
	// MaxRuns is how many runs of known workloads are used at most, the newest.
	MaxRuns = 128
	// certain is the deviation of a logarithm below which configurations are
	// compared in words.
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
	// Record holds what this run measured before the epoch, and of which study and
	// script it is.
	Record similarity.Record
	Epoch  Epoch
	// Parameters knows what the study's runs search with; nil: nothing.
	Parameters Parameters
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
	// Saved is what the epoch's configuration saved; nil if no difference was
	// measured.
	Saved *trial.Saving
}

// Decide chooses the system configuration after an epoch.
func Decide(memory *similarity.Memory, q Input) Result {
	var result Result
	var own similarity.Record
	own, q.Epoch = entered(q.Record, q.Epoch, q.Settings.Code(q.Epoch.Configuration))
	if cell, known := cellOf(own, q.Epoch.Configuration); known && q.Epoch.Features != nil {
		odd := memory.Drifted(cell, q.Epoch.Features) && !usual(memory, own, q.Epoch)
		switch {
		case odd && own.Odd:
			own = similarity.Record{ID: q.NewRecord, Machine: own.Machine, Study: own.Study, Script: own.Script, Code: own.Code, Fixed: own.Fixed, Process: own.Process, Reads: own.Reads}
			result.Drifted = true
		case odd: // chance, until the next one says the same: it counts for nothing
			q.Epoch.Features, q.Epoch.Timed = nil, false
		}
		own.Odd = odd && !result.Drifted
	}
	own.Updated = q.Epoch.At
	result.Record = contrasted(observe(own, q.Epoch), q.Epoch)
	if cell, known := cellOf(result.Record, q.Epoch.Configuration); known {
		q.Epoch.Features = cell.Features // a mean says more of the run than one epoch
	}

	d := newDecision(memory, q, result.Record)
	d.drifted = result.Drifted
	result.Setting = d.setting()
	result.Setting.AwaitsControl = false
	result.Record.Contrast = d.contrast(result.Setting)
	if pending := result.Record.Contrast; pending != nil && !pending.Ended {
		result.Setting = d.control(result.Setting, pending.Waits)
	}
	result.Saved = d.saved()
	return result
}

// usual reports whether the epoch's profile is within what runs of the same study and
// script show, of which there are enough to tell.
func usual(memory *similarity.Memory, own similarity.Record, epoch Epoch) bool {
	study, script := memory.Kin(own, MaxRuns)
	kin := slices.Concat(script, study)
	return len(kin) >= similarity.LeastKin && memory.Akin(epoch.Configuration, epoch.Features, kin)
}

// Resume is the configuration of a run that is started again: what is known of
// it and of runs like it decides, and where that is not enough, its next epoch is
// for measuring as well. It uses only the neighbours of the input's epoch.
func Resume(memory *similarity.Memory, q Input) trial.Setting {
	q.Held, q.Record.Process = nil, nil
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
	d.kindred(memory)
	if d.match.Similar && severalTimed(d.seen.study)+severalTimed(d.seen.script) == 0 {
		d.seen.similar = d.alike(nil, d.match.Members)
	}
	return d
}

// kindred looks up the runs of the study and the script. Those of the script with other
// fixed parameters are another workload until they are measured or similar.
func (d *decision) kindred(memory *similarity.Memory) {
	study, script := memory.Kin(d.seen.own, MaxRuns)
	same := func(r similarity.Record) bool { return r.Fixed == d.seen.own.Fixed }
	d.seen.argued = slices.DeleteFunc(slices.Clone(script), same)
	script = slices.DeleteFunc(script, func(r similarity.Record) bool { return !same(r) })
	d.seen.study, d.seen.script = d.akin(memory, study, script)
}

// disagree is the deviation between runs beyond which they are not taken to be of one
// workload because they are of one script.
const disagree = 0.1

// akin are the records of the study and the script that the run may be compared with.
// They are of one workload unless they differ by a test. Those with other ratios of costs
// than the run do not count. Where the ratios of their costs
// disagree, they are those on the run's side of a parameter that divides them, if one
// does. Where they disagree still, or the run's profile is unlike theirs, they are those
// of the run's workload.
func (d *decision) akin(memory *similarity.Memory, study, script []similarity.Record) (likeStudy, likeScript []similarity.Record) {
	all := len(study) + len(script)
	script = d.alike(study, script)
	d.unlike = all - len(study) - len(script)
	apart := d.disagree(study, script)
	if apart {
		if study, d.by = d.divided(study); d.by != "" {
			script = nil // with which parameters those ran is not known
			apart = d.disagree(study, script)
		}
	}
	if d.input.Epoch.Features == nil || d.input.Epoch.First { // what a first epoch does may be its start's
		return study, script
	}
	single := func(r similarity.Record) bool { return !r.Compares() }
	kin := slices.DeleteFunc(slices.Concat(script, study), single)
	if !apart && memory.Akin(d.input.Epoch.Configuration, d.input.Epoch.Features, kin) {
		return study, script
	}
	members := map[string]bool{}
	for _, one := range d.match.Members {
		members[one.ID] = true
	}
	other := func(r similarity.Record) bool { return !members[r.ID] }
	return slices.DeleteFunc(slices.Clone(study), other), slices.DeleteFunc(slices.Clone(script), other)
}

// disagree reports whether the ratios of costs differ between the runs.
func (d *decision) disagree(study, script []similarity.Record) bool {
	all := evidence{study: study, script: script}.observations(d.input.Settings.Objective, d.grid)
	return len(all) > 0 && all[0].Deviation > disagree
}

// Guess is the configuration of a trial of which nothing is known, nor of its study
// or script: the one that is best for most of the known workloads, else the default.
// What other trials of its study have measured is no word of other workloads: it is left
// out, also where they differ so much that it decides nothing.
func Guess(memory *similarity.Memory, q Input) trial.Setting {
	grid := q.Settings.Grid(q.Constants, q.Situation.Machine)
	standard := q.Settings.Default(q.Constants, q.Situation.Machine)
	others := slices.DeleteFunc(memory.Records(), func(one similarity.Record) bool { return one.Study != "" && one.Study == q.Record.Study })
	d := decision{input: q, grid: grid, seen: evidence{similar: others}}
	observations := d.seen.observations(q.Settings.Objective, grid)
	if runs := compared(observations); runs > 0 {
		candidates, best := d.best(observations)
		return trial.Setting{Configuration: candidates[best].Configuration, Phase: trial.Machine, Why: whyGuess(candidates[best].Configuration, runs)}
	}
	return trial.Setting{Configuration: Fit(standard, grid, q.Situation), Phase: trial.Default, Why: "nothing is known yet of workloads on machines of this type"}
}

// Start is the configuration of a trial that has not run yet: what is best by other
// trials of its study, else by other runs of its script, else what was planned.
func Start(memory *similarity.Memory, q Input) trial.Setting {
	d := decision{input: q, grid: q.Settings.Grid(q.Constants, q.Situation.Machine)}
	d.seen.own = q.Record
	d.kindred(memory)
	observations := d.seen.observations(q.Settings.Objective, d.grid)
	if compared(observations) == 0 {
		return q.Planned
	}
	candidates, best := d.best(observations)
	setting := trial.Setting{Configuration: candidates[best].Configuration}
	setting.Phase = d.seen.level(setting.Configuration)
	setting.Why = d.whyStart(setting)
	return setting
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
