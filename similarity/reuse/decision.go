package reuse

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/probing"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
)

// decision is everything a setting is decided on.
type decision struct {
	input   Input
	grid    []system.Configuration
	match   similarity.Match
	seen    evidence
	drifted bool
	// by is the parameter that divides the runs of the study; empty if none does.
	by string
	// unlike counts the runs of the study and the script that are of another workload.
	unlike int
}

// candidates are the configurations the next epoch can have, the present one
// among them, with what they cost beside their seconds.
func (d decision) candidates() []probing.Candidate {
	at, present := d.input.Situation, d.input.Epoch.Configuration
	cores := at.Machine // where no knob says how many cores it takes, every configuration takes the same
	for _, configuration := range d.grid {
		cores = min(cores, configuration.Demand(at.Machine))
	}
	cores = max(cores, at.Cores)
	var list []probing.Candidate
	for _, configuration := range d.grid {
		if configuration.Demand(at.Machine) > cores && !configuration.Equal(present) || !d.reachable(configuration) {
			continue
		}
		list = append(list, d.candidate(configuration))
	}
	if len(list) == 0 { // the script runs with something else altogether
		list = append(list, d.candidate(present))
	}
	return list
}

// candidate is a configuration with the share of the machine it takes.
func (d decision) candidate(configuration system.Configuration) probing.Candidate {
	at, objective := d.input.Situation, d.input.Settings.Objective
	one := probing.Candidate{Configuration: configuration, Neighbours: d.input.Epoch.Neighbours}
	demand := min(configuration.Demand(at.Machine), at.Machine)
	wanted := at.Elastic && at.Wanted
	if wanted {
		one.Neighbours = at.Machine/demand - 1
	}
	if objective == system.Cost || objective == system.Seconds && wanted {
		one.LogWeight = math.Log(float64(demand) / float64(at.Machine))
	}
	return one
}

// reachable reports whether the configuration can be had without a new start.
func (d decision) reachable(configuration system.Configuration) bool {
	return !slices.ContainsFunc(d.input.Held, func(knob string) bool {
		return configuration[knob] != d.input.Epoch.Configuration[knob]
	})
}

// loads reports whether the process would have to load code for the configuration.
func (d decision) loads(configuration system.Configuration) bool {
	return !d.seen.own.Process.Holds(d.input.Settings.Code(configuration))
}

func index(candidates []probing.Candidate, of system.Configuration) int {
	return slices.IndexFunc(candidates, func(c probing.Candidate) bool { return c.Configuration.Equal(of) })
}

func (d decision) standard() system.Configuration {
	return d.input.Settings.Default(d.input.Constants, d.input.Situation.Machine)
}

// machineBest is the index of the candidate that is taken where nothing else is known:
// what is best for most workloads, else the default.
func (d decision) machineBest(candidates []probing.Candidate) int {
	if d.input.MachineBest != nil {
		if at := index(candidates, d.input.MachineBest); at >= 0 {
			return at
		}
	}
	return index(candidates, d.standard())
}

// best is the candidate with the lowest expected cost.
func (d decision) best(observations []probing.Observation) ([]probing.Candidate, int) {
	candidates := d.candidates()
	choice := probing.Fit(d.grid, observations).Choose(candidates, index(candidates, d.standard()))
	return candidates, choice.Best
}

// setting is the configuration of the next epoch.
func (d decision) setting() trial.Setting {
	observations := d.seen.observations(d.input.Settings.Objective, d.grid)
	candidates := d.candidates()
	model := probing.Fit(d.grid, observations)
	choice := model.Choose(candidates, d.machineBest(candidates))
	present := d.input.Epoch.Configuration
	if choice.Probe >= 0 && d.loads(candidates[choice.Probe].Configuration) {
		d.input.Left = max(0, d.input.Left-1) // its first epoch measures nothing
	}

	setting := trial.Setting{Confidence: trial.Float(d.match.Confidence)}
	if d.match.Similar {
		setting.Workload = d.match.Workload
	} else {
		setting.Confidence = 0
	}
	chosen := candidates[choice.Best].Configuration
	others := len(d.seen.study) + len(d.seen.script) + len(d.seen.argued) + len(d.seen.similar)
	switch timed := timedUnder(d.seen.own); {
	case choice.Probe < 0 && len(timed) < 2 && compared(observations) > 0 && others > 0:
		setting.Phase = d.seen.level(chosen)
	case choice.Probe < 0 && len(timed) < 2 && d.input.MachineBest != nil:
		setting.Phase = trial.Machine
	case choice.Probe < 0 && compared(observations) == 0 && len(candidates) < len(d.grid):
		setting.Phase = trial.Default // as near to it as there are cores
	case choice.Probe < 0:
		setting.Phase = trial.Decided
	case d.input.Left == 0 && compared(observations) > 0:
		// Nothing follows that could be measured: this is the best so far.
		setting.Phase = trial.Probing
	case !timed[present.Key()] && d.input.Left >= 2 && index(candidates, present) >= 0:
		// What comes next is compared with this.
		setting.Phase, chosen = trial.Probing, present
	case d.input.Left == 0, len(timed) == 0 && compared(observations) == 0:
		// Nothing is known, and the run is too short to learn from.
		if before := d.input.Planned; before.Phase != "" {
			return before // which has nothing to say of what is best alone either
		}
		setting.Phase, chosen = trial.Default, present
	case len(timed) == 0:
		setting.Phase = d.seen.level(chosen)
	default:
		setting.Phase, chosen = trial.Probing, candidates[counterpart(choice, candidates, timed)].Configuration
	}
	setting.Configuration = chosen
	setting.Why = d.why(setting, choice, model)
	if compared(observations) > 0 {
		setting.Alone = d.alone(model)
	}
	return setting
}

// alone is the best configuration for a training that has the machine for itself.
func (d decision) alone(model *probing.Model) system.Configuration {
	d.input.Situation.Elastic, d.input.Situation.Wanted = false, false
	d.input.Situation.Cores = d.input.Situation.Machine
	d.input.Epoch.Neighbours, d.input.Held = 0, nil
	candidates := d.candidates()
	return candidates[model.Choose(candidates, index(candidates, d.standard())).Best].Configuration
}

// counterpart is the candidate to probe. A run that was timed under one
// configuration only learns nothing from more of that: it is compared with the best, or
// the best with its rival.
func counterpart(choice probing.Choice, candidates []probing.Candidate, timed map[string]bool) int {
	if len(timed) > 1 || !timed[candidates[choice.Probe].Configuration.Key()] {
		return choice.Probe
	}
	if choice.Rival >= 0 {
		return choice.Rival
	}
	return choice.Best
}

// timedUnder are the configurations the run was timed under.
func timedUnder(record similarity.Record) map[string]bool {
	timed := map[string]bool{}
	for _, cell := range record.Cells {
		if cell.Epochs > 0 || cell.Firsts > 0 {
			timed[cell.Configuration.Key()] = true
		}
	}
	return timed
}
