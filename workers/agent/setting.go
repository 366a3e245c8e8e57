package agent

import (
	"fmt"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// Bounds of the system configuration that a script says was in force.
const (
	maxKnobs = 32
	maxWord  = 1024
)

// setting is the system configuration of a run: what is wanted, and what is
// really in force. The run's mutex guards wanted, holding its reports the rest.
type setting struct {
	wanted system.Configuration
	// started is what the script was told when it was started, without what is
	// not the script's to apply.
	started system.Configuration
	// applied is what this agent has applied.
	applied system.Configuration
	// told are the sentences on it that are in the trial's log.
	told map[string]bool
}

// wantedOf is the system configuration that the lease wants, with the GPUs that
// the server gave the trial.
func wantedOf(lease protocol.Lease) system.Configuration {
	wanted := system.Configuration(lease.System)
	if lease.GPUCount != nil {
		wanted = wanted.With(system.Configuration{system.GPUs: space.Int(int64(*lease.GPUCount))})
	}
	return wanted
}

func newSetting(wanted system.Configuration) *setting {
	s := &setting{wanted: maps.Clone(wanted), started: system.Configuration{}, applied: system.Configuration{}, told: map[string]bool{}}
	for name, value := range wanted {
		if !agents(name) {
			s.started[name] = value
		}
	}
	return s
}

// agents reports whether the knob is applied by the agent. What is not in the
// catalogue is between the study and its script.
func agents(name string) bool {
	knob, known := system.Find(name)
	return known && knob.Applier == system.Agent
}

// inForce is the configuration of the epoch just ended: what this agent has kept
// applied, and what the script says of the rest, else what it was started with.
func (r *run) inForce(said map[string]space.Value) map[string]space.Value {
	all := r.setting.started.With(r.kept())
	for name, value := range said {
		if !agents(name) {
			all[name] = value
		}
	}
	if len(all) == 0 {
		return nil
	}
	return all
}

// wanted is the configuration the server wants now.
func (r *run) wanted() system.Configuration {
	r.mutex.Lock()
	defer r.mutex.Unlock()
	return r.setting.wanted
}

// resolve takes the configuration for the next epoch out of the answer to a
// report and applies what is the agent's. The caller holds the reports.
func (r *run) resolve(directive protocol.Directive) {
	if directive.Action != protocol.Continue {
		return
	}
	if len(directive.System) > 0 {
		r.mutex.Lock()
		r.setting.wanted = maps.Clone(directive.System)
		r.mutex.Unlock()
	}
	r.apply()
}

// checkSystem names what is wrong with the configuration a script reports.
func checkSystem(said map[string]space.Value) error {
	var faults []problem.Field
	if len(said) > maxKnobs {
		faults = append(faults, problem.Field{Path: "system", Value: len(said), Message: fmt.Sprintf("must hold at most %d values", maxKnobs)})
	}
	for _, name := range slices.Sorted(maps.Keys(said)) {
		text, _ := said[name].Text()
		switch {
		case name == "" || len(name) > maxName:
			faults = append(faults, problem.Field{Path: "system", Value: truncate(name, maxName), Message: fmt.Sprintf("a name must have 1 to %d bytes", maxName)})
		case said[name].IsZero():
			faults = append(faults, problem.Field{Path: "system." + name, Message: "must be a number, a word or a truth value"})
		case len(text) > maxWord:
			faults = append(faults, problem.Field{Path: "system." + name, Message: fmt.Sprintf("a word must have at most %d bytes", maxWord)})
		}
	}
	if len(faults) > 0 {
		return problem.WithFields("the report is not valid", faults[:min(len(faults), maxKnobs)])
	}
	return nil
}
