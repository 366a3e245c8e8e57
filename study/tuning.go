package study

import (
	"context"
	"maps"
	"math"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/similarity"
	"github.com/tandem-tune/tandem/similarity/groundtruth"
	"github.com/tandem-tune/tandem/similarity/reuse"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/allocator"
	"github.com/tandem-tune/tandem/workers/pool"
)

// tuning is the study's knobs; nil when it tunes none.
func (r *session) tuning() *system.Settings { return r.study.Definition.System.Tuning }

// tuningOn is the study's knobs as far as they can be set there; nil for none.
func (r *session) tuningOn(here allocator.Site) *system.Settings {
	all := r.tuning()
	if all == nil {
		return nil
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

// demands is how many cores a trial of the study needs at least on the machine,
// 0 for all of them, or for its part of it where it shares a GPU.
func (r *session) demands(machine int) int {
	constants := r.study.Definition.System.Constants
	settings := r.tuning()
	if settings == nil {
		if _, given := constants[system.CPUThreads]; !given {
			if _, given := constants[system.Cores]; !given {
				return 0
			}
		}
		return constants.Demand(machine)
	}
	fewest, says := machine, !r.study.Definition.SharesGPUs()
	for _, configuration := range settings.Grid(constants, machine) {
		fewest, says = min(fewest, configuration.Demand(machine)), says || saysCores(configuration)
	}
	if !says {
		return 0 // its trials run beside others, on a part of the machine
	}
	return fewest
}

// beginning is the configuration of a new lease: what is known to be good for
// the trial, else for trials like it, as far as the machine has room for it.
func (s *Service) beginning(ctx context.Context, r *session, t trial.Trial, here allocator.Site) (*trial.Setting, error) {
	settings := r.tuningOn(here)
	if settings == nil {
		return nil, nil
	}
	known, err := s.truth.Machine(ctx, here.Machine)
	if err != nil {
		return nil, err
	}
	run := r.runOn(here, t, *settings)
	if !run.Situation.Elastic {
		run.Situation.Cores = run.Situation.Machine // what it shares with others is its user's choice
	}
	setting, resumed := known.Start(run)
	if resumed {
		if t.Setting != nil {
			setting.Drifts = t.Setting.Drifts
		}
		return &setting, nil
	}
	grid := settings.Grid(run.Constants, run.Situation.Machine)
	if before := t.Setting; before != nil && before.Phase != trial.Default && slices.ContainsFunc(grid, system.Configuration(before.Configuration).Equal) {
		again := *before
		if before.Phase != trial.Probing {
			again.Configuration = reuse.Fit(before.Configuration, grid, run.Situation)
			return &again, nil
		}
	}
	return &setting, nil
}

// runOn is the trial as the ground truth sees it there.
func (r *session) runOn(here allocator.Site, t trial.Trial, settings system.Settings) groundtruth.Run {
	return groundtruth.Run{
		Study: r.study.ID, Record: groundtruth.RecordID(t, here.Machine), By: r.study.Definition.Similarity,
		Settings: settings, Constants: r.study.Definition.System.Constants, Situation: reuse.Situation{Machine: here.Room.Machine, Cores: here.Cores, Elastic: here.Room.Elastic, Wanted: here.Wanted},
		Left: t.Budget.Epochs - t.LastEpoch,
	}
}

// guidance is what a report means for the system configuration of its trial.
type guidance struct {
	configuration map[string]space.Value // in force in the epoch
	phase         trial.Phase
	why           string
	setting       *trial.Setting // for the next one
	saved         *trial.Saving
	records       []similarity.Record
}

// guide decides with which system configuration a trial goes on.
func (s *Service) guide(ctx context.Context, r *session, t trial.Trial, report protocol.Report) (guidance, error) {
	here := s.allocator.SiteOf(t.Worker, t.ID)
	settings := r.tuningOn(here)
	if settings == nil || t.Setting == nil {
		return guidance{configuration: r.inForce(t, report)}, nil
	}
	known, err := s.truth.Machine(ctx, here.Machine)
	if err != nil {
		return guidance{}, err
	}
	g := guidance{configuration: r.inForce(t, report)}
	if system.Configuration(g.configuration).Equal(t.Setting.Configuration) {
		g.phase, g.why = t.Setting.Phase, t.Setting.Why
	}
	first := t.State == trial.Leased
	run := r.runOn(here, t, *settings)
	run.Left = t.Budget.Epochs - report.Epoch
	answer := known.Continue(run, groundtruth.Epoch{
		Epoch: r.epochOf(t, report, g.configuration, first), Planned: *t.Setting, Held: held(t, g.configuration, first),
		Machine: here.Machine, NewRecord: groundtruth.RecordID(drifted(t), here.Machine),
	})
	answer.Record.Updated = s.options.Now()
	setting := answer.Setting
	setting.Drifts = t.Setting.Drifts
	if answer.Drifted {
		setting.Drifts++
	}
	g.setting, g.records = &setting, []similarity.Record{answer.Record}
	if answer.Saved != nil {
		g.saved = &trial.Saving{Seconds: answer.Saved.Seconds * trial.Float(t.Budget.DataFraction), Joules: answer.Saved.Joules * trial.Float(t.Budget.DataFraction)}
	}
	return g, nil
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
func (r *session) inForce(t trial.Trial, report protocol.Report) map[string]space.Value {
	constants := r.study.Definition.System.Constants
	if t.Setting == nil {
		return constants
	}
	if len(report.System) == 0 {
		return t.Setting.Configuration
	}
	configuration := system.Configuration{}.With(constants)
	for name := range t.Setting.Configuration {
		if _, constant := constants[name]; constant {
			continue
		}
		if value, told := report.System[name]; told {
			configuration[name] = value
		}
	}
	return configuration
}

// epochOf is the epoch as advice sees it. A first epoch is timed and profiled
// only where its start is known to be left out.
func (r *session) epochOf(t trial.Trial, report protocol.Report, configuration system.Configuration, first bool) reuse.Epoch {
	epoch := reuse.Epoch{
		Configuration: configuration, Neighbours: int(math.Round(float64(report.Neighbours))), First: first, Timed: !first || report.SetupSeconds > 0,
		Seconds: float64(report.Seconds-report.SetupSeconds) / t.Budget.DataFraction,
	}
	if report.Energy != nil {
		epoch.Joules = float64(report.Energy.Joules) / t.Budget.DataFraction
	}
	if report.Profile != nil && (!first || report.SetupSeconds > 0) {
		epoch.Features = similarity.Features(*report.Profile)
	}
	return epoch
}

// held are the knobs that cannot be switched while the command runs: those that
// need a new start, and those that the script was told to switch and did not.
func held(t trial.Trial, inForce system.Configuration, first bool) []string {
	var names []string
	for name, meant := range t.Setting.Configuration {
		knob, known := system.Find(name)
		if !known || !knob.Live || !first && inForce[name] != meant {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// resize tells the pool what the trial takes of its machine from now on.
func (s *Service) resize(r *session, t trial.Trial, report protocol.Report) {
	memory := int64(0)
	if report.Profile != nil {
		memory = int64(report.Profile.Host["tree.resident_bytes"])
	}
	r.resident = max(r.resident, memory)
	s.allocator.Resize(t.ID, t.LeaseEpoch, t.Worker, func(cores int) pool.Need { return r.takes(t, cores, memory) })
}

// occupies is how many cores the trial keeps busy on a machine with that many;
// 0 for all of them, or for its part of it where it shares a GPU.
func (r *session) occupies(t trial.Trial, machine int) int {
	if t.Setting == nil {
		return r.demands(max(1, machine))
	}
	configuration := system.Configuration(t.Setting.Configuration)
	if machine <= 0 {
		machine = math.MaxInt32 // not registered yet
	}
	if demand := configuration.Demand(machine); demand < machine || r.study.Definition.SharesGPUs() && saysCores(configuration) {
		return demand
	}
	return 0
}

// unknownKnobs names what a report says of knobs that there are not.
func unknownKnobs(configuration map[string]space.Value) []problem.Field {
	var faults []problem.Field
	for _, name := range slices.Sorted(maps.Keys(configuration)) {
		if _, known := system.Find(name); !known {
			faults = append(faults, problem.Field{Path: "system", Value: name, Message: "is no system parameter: there are " + strings.Join(system.Names(), ", ")})
		}
	}
	return faults
}

// turnOf is the gate of an elastic worker.
func (s *Service) turnOf(worker string) gate.Gate {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	turn, ok := s.turns[worker]
	if !ok {
		turn = gate.New()
		s.turns[worker] = turn
	}
	return turn
}
