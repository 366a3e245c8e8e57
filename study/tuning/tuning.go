// Package tuning answers: with which system configuration does a trial of a study run,
// and how many cores does that keep busy?
package tuning

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
)

// Study is one whose trials start and go on with system configurations. Its definition is
// only read.
type Study struct {
	ID, Owner  string
	Definition *definition.Definition
	// Trials are those that there are; they are only read.
	Trials []trial.Trial
}

// maxCompared is how many trials of a study are compared by their parameters, the newest.
const maxCompared = 256

// parameters are those of the trials by their records on the machine, made when they are
// asked for.
func (s Study) parameters(of trial.Trial, machine string) reuse.Parameters {
	var known map[string]map[string]space.Value
	return func(record string) map[string]space.Value {
		if known == nil {
			known = map[string]map[string]space.Value{groundtruth.RecordID(of, machine): of.Configuration}
			for _, one := range s.Trials[max(0, len(s.Trials)-maxCompared):] {
				known[groundtruth.RecordID(one, machine)] = one.Configuration
			}
		}
		return known[record]
	}
}

// on is the study's knobs as far as they can be set there; nil for none. Automatic tuning
// has those that the script reads, with what it takes of them by itself.
func (s Study) on(here allocator.Site, reads system.Configuration) *system.Settings {
	all := s.Definition.Tuning()
	if all == nil {
		return nil
	}
	if s.automatic() {
		threads := s.threads(here)
		if threads == nil {
			return nil
		}
		chosen := &system.Settings{Objective: all.Objective, Tuned: []system.Tuned{{Name: system.CPUThreads, Values: threads}}}
		if own, read := reads[system.LoaderWorkers]; read {
			chosen.Tuned = append(chosen.Tuned, system.Tuned{Name: system.LoaderWorkers, Values: s.loaders(here, own)})
		}
		return chosen
	}
	possible := system.Settings{Objective: all.Objective}
	for _, tuned := range all.Tuned {
		knob, _ := system.Find(tuned.Name)
		if knob.Applier == system.Script || slices.Contains(here.Knobs, tuned.Name) {
			possible.Tuned = append(possible.Tuned, tuned)
		}
	}
	if len(possible.Tuned) == 0 {
		return nil
	}
	return &possible
}

// Demands is how many cores a trial of the study needs at least on the machine,
// 0 for all of them, or for its part of it where it shares a GPU.
func (s Study) Demands(machine int) int {
	constants := s.Definition.System.Constants
	settings := s.Definition.Tuning()
	if settings == nil {
		if _, given := constants[system.CPUThreads]; !given {
			if _, given := constants[system.Cores]; !given {
				return 0
			}
		}
		return constants.Demand(machine)
	}
	fewest, says := machine, !s.Definition.SharesGPUs()
	for _, configuration := range settings.Grid(constants, machine) {
		fewest, says = min(fewest, configuration.Demand(machine)), says || saysCores(configuration)
	}
	if !says {
		return 0 // its trials run beside others, on a part of the machine
	}
	return fewest
}

// Known is what runs on the machine have taught; nil where the study tunes nothing there.
func (s Study) Known(ctx context.Context, truth *groundtruth.Base, here allocator.Site) (*groundtruth.Machine, error) {
	if s.on(here, nil) == nil {
		return nil, nil
	}
	return truth.Machine(ctx, here.Machine)
}

// Begin is the configuration of a new lease: what is known to be good for
// the trial, else for trials like it, as far as the machine has room for it.
func (s Study) Begin(known *groundtruth.Machine, t trial.Trial, here allocator.Site) *trial.Setting {
	if known == nil {
		return nil
	}
	run := s.runOn(here, t)
	run.Reads = known.Reads(run)
	settings := s.on(here, run.Reads)
	if settings == nil {
		return nil
	}
	run.Settings = *settings
	if !run.Situation.Elastic {
		run.Situation.Cores = run.Situation.Machine // what it shares with others is its user's choice
	}
	setting, resumed := known.Start(run)
	if _, why := s.given(here); why != "" && run.Reads == nil {
		setting.Why = why
		return &setting
	}
	if resumed {
		if t.Setting != nil {
			setting.Drifts = t.Setting.Drifts
		}
		return &setting
	}
	grid := settings.Grid(run.Constants, run.Situation.Machine)
	if before := t.Setting; before != nil && settled(before.Phase) && !nearer(setting.Phase) && slices.ContainsFunc(grid, system.Configuration(before.Configuration).Equal) {
		again := *before // it was found on another type of machine
		again.AwaitsControl, again.Ignored = false, nil
		again.Configuration = reuse.Fit(before.Configuration, grid, run.Situation)
		return &again
	}
	return &setting
}

// settled reports whether a configuration was chosen to train with, by what was measured.
func settled(phase trial.Phase) bool {
	return phase != trial.Default && phase != trial.Probing && phase != trial.Control
}

// nearer reports whether the study or the script was measured on this type of machine.
func nearer(phase trial.Phase) bool { return phase == trial.Study || phase == trial.Script }

// runOn is the trial as the ground truth sees it there.
func (s Study) runOn(here allocator.Site, t trial.Trial) groundtruth.Run {
	script := groundtruth.ScriptKey(s.Owner, s.Definition.Command, s.Definition.Directory)
	return groundtruth.Run{
		Study: groundtruth.StudyKey(s.ID), Script: script, Code: groundtruth.CodeKey(s.Definition.Code), Fixed: groundtruth.FixedKey(script, s.Definition.Space),
		Record: groundtruth.RecordID(t, here.Machine), By: s.Definition.Similarity,
		Constants: s.Definition.System.Constants, Situation: reuse.Situation{Machine: here.Room.Machine, Cores: here.Cores, Elastic: here.Room.Elastic, Wanted: here.Wanted},
		Left: t.Budget.Epochs - t.LastEpoch, Parameters: s.parameters(t, here.Machine),
	}
}

// Guidance is what a report means for the system configuration of its trial.
type Guidance struct {
	Configuration map[string]space.Value // in force in the epoch
	Phase         trial.Phase
	Why           string
	Setting       *trial.Setting // for the next one
	Saved         *trial.Saving
	Records       []similarity.Record
}

// Guide decides with which system configuration a trial goes on after a report.
func (s Study) Guide(known *groundtruth.Machine, t trial.Trial, report protocol.Report, here allocator.Site, now time.Time) Guidance {
	g := Guidance{Configuration: s.inForce(t, report)}
	early := report.Epoch == t.Budget.Epochs && report.Epoch > t.LastEpoch+1 // of a training that was done before: no epoch
	if known == nil || t.Setting == nil || early {
		return g
	}
	run := s.runOn(here, t)
	run.Reads = s.reads(known, run, t, g.Configuration)
	settings := s.on(here, run.Reads)
	if settings == nil {
		return g
	}
	run.Settings, run.Left = *settings, t.Budget.Epochs-report.Epoch
	t = givenTo(t, run.Reads)
	if system.Configuration(g.Configuration).Equal(t.Setting.Configuration) {
		g.Phase, g.Why = t.Setting.Phase, t.Setting.Why
	}
	first := t.State == trial.Leased
	fixed := held(t, g.Configuration, first)
	answer := known.Continue(run, groundtruth.Epoch{
		Epoch: s.epochOf(t, report, g.Configuration, first), Planned: *t.Setting, Held: fixed,
		Machine: here.Machine, NewRecord: groundtruth.RecordID(drifted(t), here.Machine),
	})
	answer.Record.Updated = now
	setting := answer.Setting
	setting.Drifts, setting.Ignored = t.Setting.Drifts, slices.DeleteFunc(fixed, fixedByStart)
	if _, why := s.given(here); why != "" && run.Reads == nil {
		setting.Why = why
	}
	if answer.Drifted {
		setting.Drifts++
	}
	g.Setting, g.Records = &setting, []similarity.Record{answer.Record}
	if answer.Saved != nil {
		g.Saved = answer.Saved.Times(trial.Float(t.Budget.DataFraction))
	}
	return g
}

// givenTo is the trial as if it had been given what its script takes by itself, where it
// was given nothing else.
func givenTo(t trial.Trial, own system.Configuration) trial.Trial {
	setting := *t.Setting
	setting.Configuration = own.With(setting.Configuration)
	t.Setting = &setting
	return t
}

// drifted is the trial as another workload.
func drifted(t trial.Trial) trial.Trial {
	setting := *t.Setting
	setting.Drifts++
	t.Setting = &setting
	return t
}

// inForce is the configuration the epoch ran with: the constants, and of what is
// tuned what the worker says; all of it as it was meant when it says nothing.
func (s Study) inForce(t trial.Trial, report protocol.Report) map[string]space.Value {
	constants := s.Definition.System.Constants
	if t.Setting == nil {
		return constants
	}
	if len(report.System) == 0 {
		return t.Setting.Configuration
	}
	configuration := system.Configuration{}.With(constants)
	for name, value := range report.System {
		_, constant := constants[name]
		_, tuned := t.Setting.Configuration[name]
		if knob, _ := system.Find(name); !constant && (tuned || s.automatic() && name == system.LoaderWorkers && knob.Takes(value)) {
			configuration[name] = value
		}
	}
	return configuration
}

// alone is on average beside fewer other trials than this: none, but for the clock.
const alone = 0.02

// epochOf is the epoch as advice sees it. A first epoch is timed and profiled
// only where its start is known to be left out.
func (s Study) epochOf(t trial.Trial, report protocol.Report, configuration system.Configuration, first bool) reuse.Epoch {
	epoch := reuse.Epoch{
		Configuration: configuration, Neighbours: int(math.Round(float64(report.Neighbours))), Alone: report.Neighbours < alone, First: first, Timed: !first || report.SetupSeconds > 0,
		Seconds: float64(report.Seconds-report.SetupSeconds) / t.Budget.DataFraction,
	}
	if report.Energy != nil && report.Seconds > 0 { // the start has its share of them
		epoch.Joules = float64(report.Energy.Joules*(1-report.SetupSeconds/report.Seconds)) / t.Budget.DataFraction
	}
	if report.Profile != nil && (!first || report.SetupSeconds > 0) {
		epoch.Features = similarity.Features(*report.Profile)
	}
	return epoch
}

// held are the knobs that cannot be switched while the command runs: those that
// need a new start, and those that the script was told to switch once and did not.
func held(t trial.Trial, inForce system.Configuration, first bool) []string {
	var names []string
	for name, meant := range t.Setting.Configuration {
		if fixedByStart(name) || !first && inForce[name] != meant || slices.Contains(t.Setting.Ignored, name) {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// fixedByStart reports whether the knob switches only when the command is started.
func fixedByStart(name string) bool {
	knob, known := system.Find(name)
	return !known || !knob.Live
}

// Occupies is how many cores the trial keeps busy on a machine with that many;
// 0 for all of them, or for its part of it where it shares a GPU. Where it waits to run
// alone, the cores that become free are its own.
func (s Study) Occupies(t trial.Trial, machine int) int {
	switch {
	case t.Setting == nil:
		return s.Demands(max(1, machine))
	case t.Setting.AwaitsControl:
		return 0
	}
	configuration := system.Configuration(t.Setting.Configuration)
	if machine <= 0 {
		machine = math.MaxInt32 // not registered yet
	}
	if demand := configuration.Demand(machine); demand < machine || s.Definition.SharesGPUs() && saysCores(configuration) {
		return demand
	}
	return 0
}

// UnknownKnobs names what a report says of knobs that there are not.
func UnknownKnobs(configuration map[string]space.Value) []problem.Field {
	var faults []problem.Field
	for _, name := range slices.Sorted(maps.Keys(configuration)) {
		if _, known := system.Find(name); !known {
			faults = append(faults, problem.Field{Path: "system", Value: name, Message: "is no system parameter: there are " + strings.Join(system.Names(), ", ")})
		}
	}
	return faults
}

// saysCores reports whether the configuration says how many cores it keeps busy.
func saysCores(configuration system.Configuration) bool {
	_, threads := configuration[system.CPUThreads]
	_, cores := configuration[system.Cores]
	return threads || cores
}
