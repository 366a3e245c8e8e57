package study

import (
	"context"
	"encoding/json"
	"fmt"
	"math"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/edge"
	"github.com/tandem-tune/tandem/edge/deployment"
	"github.com/tandem-tune/tandem/edge/device"
	"github.com/tandem-tune/tandem/problem"
	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// claimTerm is for how long a worker that shall run inferences of an architecture
// is waited for, before another one may.
const claimTerm = 5 * time.Minute

// claim is what one worker runs.
type claim struct{ key, machine string }

// Architecture takes in what a trial trains. The answer has the best deployments
// as far as they are known, and what the worker shall run itself. Telling the
// same again changes nothing.
func (s *Service) Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	reply := protocol.ArchitectureReply{Run: []protocol.InferenceCell{}, Deployments: []deployment.Deployment{}}
	if faults := architectureFaults(report); len(faults) > 0 {
		return reply, problem.WithFields("the architecture of trial "+string(id)+" is not valid", faults)
	}
	if err := s.emulating.enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.emulating.leave()
	def, machine, err := s.holder(ctx, id, report.LeaseEpoch)
	if err != nil {
		return reply, err
	}
	a, err := s.store.Architecture(ctx, report.Key)
	switch {
	case err == nil:
		reply.Known = true
	case problem.Is(err, problem.NotFound):
		a = told(report)
	default:
		return reply, err
	}
	a.Seen = s.options.Now()
	if report.Site != nil {
		site := *report.Site
		site.Machine = machine
		a = a.At(site)
	}
	found, err := s.deploy(ctx, a, def, machine)
	if err != nil {
		return reply, err
	}
	reply.Deployments = append(reply.Deployments, found...)
	reply.Run = append(reply.Run, s.toRun(a, def, machine)...)
	err = emulated(ctx, s, emulation{id, report.LeaseEpoch, a, inferenceOf(a, machine, found), func() {
		if len(reply.Run) > 0 {
			s.claims[claim{a.Key, machine}] = a.Seen.Add(claimTerm)
		}
	}}, &reply)
	return reply, err
}

// Inferences takes in what real inferences took on the trial's worker.
func (s *Service) Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.Deployments, error) {
	reply := protocol.Deployments{Architecture: report.Key, Devices: []deployment.Deployment{}}
	if faults := edge.RunFaults(report.Runs); len(faults) > 0 {
		return reply, problem.WithFields("the inferences of trial "+string(id)+" are not valid", faults)
	}
	if err := s.emulating.enter(ctx); err != nil {
		return reply, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	defer s.emulating.leave()
	def, machine, err := s.holder(ctx, id, report.LeaseEpoch)
	if err != nil {
		return reply, err
	}
	a, err := s.store.Architecture(ctx, report.Key)
	if problem.Is(err, problem.NotFound) {
		return reply, problem.WithFields("the inferences of trial "+string(id)+" are not valid", []problem.Field{{Path: "key", Value: report.Key,
			Message: "is of no known architecture: tell it first"}})
	}
	if err != nil {
		return reply, err
	}
	a.Seen = s.options.Now()
	for i := range report.Runs {
		report.Runs[i].Machine, report.Runs[i].At = machine, a.Seen
	}
	a = a.With(report.Runs)
	found, err := s.searchDevices(ctx, a, def, machine)
	if err != nil {
		return reply, err
	}
	reply.Devices = append(reply.Devices, found...)
	inference := inferenceOf(a, machine, found)
	inference.Failure = report.Failure
	err = emulated(ctx, s, emulation{id, report.LeaseEpoch, a, inference, func() {
		delete(s.claims, claim{report.Key, machine})
		s.mutex.Lock()
		defer s.mutex.Unlock()
		clear(s.deployed) // runs calibrate all estimates
	}}, &reply)
	return reply, err
}

// told is the architecture as the worker says it is.
func told(report protocol.ArchitectureReport) edge.Architecture {
	return edge.Architecture{Key: report.Key, Graph: report.Graph, ActivationBytes: report.ActivationBytes, StoredBytes: report.StoredBytes}
}

func architectureFaults(report protocol.ArchitectureReport) []problem.Field {
	faults := told(report).Faults()
	if report.Site != nil {
		if _, err := machineOf(*report.Site).Device(); err != nil {
			faults = append(faults, problem.Field{Path: "site", Message: err.Error()})
		}
	}
	return faults
}

// holder is the definition of the study of a trial that is held under the lease,
// and the type of machine of its worker.
func (s *Service) holder(ctx context.Context, id trial.ID, epoch trial.LeaseEpoch) (definition.Definition, string, error) {
	r, t, err := s.lockedTrial(ctx, id)
	if err != nil {
		return definition.Definition{}, "", err
	}
	def := r.study.Definition
	r.mutex.Unlock()
	if err := holds(t, epoch); err != nil {
		return def, "", err
	}
	return def, s.siteOf(t.Worker, id).machine, nil
}

// emulation is what became known of a trial's model under a lease, and what follows
// once it is stored.
type emulation struct {
	trial        trial.ID
	lease        trial.LeaseEpoch
	architecture edge.Architecture
	inference    trial.InferenceCost
	follow       func()
}

// emulated writes the architecture, and what it means for the trial and for
// others of the same architecture on such a machine.
func emulated[T any](ctx context.Context, s *Service, e emulation, answer *T) error {
	r, t, err := s.lockedTrial(ctx, e.trial)
	if err != nil {
		return err
	}
	defer r.leave()
	if err := holds(t, e.lease); err != nil {
		return refusal(r, err)
	}
	tx := s.begin(r)
	tx.change.Architectures = []edge.Architecture{e.architecture}
	for _, other := range r.trials {
		same := other.Number == t.Number || other.Inference != nil && other.Inference.Architecture == e.inference.Architecture && other.Inference.Machine == e.inference.Machine
		if !same || other.Inference != nil && other.Inference.Same(e.inference) {
			continue
		}
		now := e.inference
		other.Inference = &now
		tx.log(Event{Kind: Emulated, Trial: other.ID, State: string(other.State), Worker: other.Worker}, other.Inference)
		tx.stage(other)
	}
	tx.then(e.follow)
	return commit(ctx, s, tx, answer)
}

// inferenceOf is what the trial's objectives can be about: the first device.
func inferenceOf(a edge.Architecture, machine string, found []deployment.Deployment) trial.InferenceCost {
	inference := trial.InferenceCost{Architecture: a.Key, Machine: machine, Runs: len(a.Runs)}
	if len(found) == 0 {
		return inference
	}
	first := found[0]
	inference.Device, inference.Feasible, inference.Method = first.Device, first.Feasible, first.Method
	inference.EnergyMethod = first.EnergyMethod
	inference.LatencySeconds, inference.BatchSize = trial.Float(first.LatencySeconds.Value), first.Configuration.BatchSize
	inference.SamplesPerSecond, inference.JoulesPerSample = trial.Float(first.SamplesPerSecond), trial.Float(first.JoulesPerSample.Value)
	inference.MemoryBytes = first.MemoryBytes
	if first.Runs() {
		inference.LatencyLowSeconds, inference.LatencyHighSeconds = trial.Float(first.LatencySeconds.Low), trial.Float(first.LatencySeconds.High)
		inference.JoulesPerSampleLow, inference.JoulesPerSampleHigh = trial.Float(first.JoulesPerSample.Low), trial.Float(first.JoulesPerSample.High)
	} else { // never the best
		none := trial.Float(math.NaN())
		inference.LatencySeconds, inference.SamplesPerSecond, inference.JoulesPerSample = none, none, none
	}
	return inference
}

// toRun are the settings in which the worker shall run inferences: where one of
// the devices is its own machine, no such run is known, and no other worker of
// the kind is at it.
func (s *Service) toRun(a edge.Architecture, def definition.Definition, machine string) []protocol.InferenceCell {
	if def.Inference == nil || !slices.Contains(def.Inference.Devices, device.ThisMachine) {
		return nil
	}
	at := slices.IndexFunc(a.Sites, func(site edge.Site) bool { return site.Machine == machine })
	if at < 0 || slices.ContainsFunc(a.Runs, func(run edge.Run) bool { return run.Machine == machine }) {
		return nil
	}
	now := s.options.Now()
	if until, claimed := s.claims[claim{a.Key, machine}]; claimed && now.Before(until) {
		return nil
	}
	var cells []protocol.InferenceCell
	for _, threads := range doublings(1, a.Sites[at].Cores) {
		for _, batch := range doublings(def.Inference.BatchSize.Low, def.Inference.BatchSize.High) {
			cells = append(cells, protocol.InferenceCell{Batch: batch, Threads: threads})
		}
	}
	return cells
}

// doublings are low, twice that and so on, and high.
func doublings(low, high int) []int {
	var list []int
	for n := max(1, low); n < high; n *= 2 {
		list = append(list, n)
	}
	return append(list, high)
}

func machineOf(site edge.Site) device.Machine {
	return device.Machine{
		Processor: site.Processor, Cores: site.Cores, LowestHertz: site.LowestHertz, HighestHertz: site.HighestHertz,
		MemoryBytes: site.MemoryBytes, MemoryBytesPerSecond: site.MemoryBytesPerSecond, Features: site.Features,
	}
}

// Deployments are how the trial's model is best run on the study's devices. The
// error is not_found for a trial whose script saved no model, and for a study
// without an inference section.
func (s *Service) Deployments(ctx context.Context, ref string, number int) (protocol.Deployments, error) {
	answer := protocol.Deployments{Trial: number, Devices: []deployment.Deployment{}}
	var def definition.Definition
	t, err := look(ctx, s, ref, func(r *runtime) (trial.Trial, error) {
		def = r.study.Definition
		if number < 0 || number >= len(r.trials) {
			return trial.Trial{}, problem.New(problem.NotFound, "study %s has no trial %d", def.Name, number)
		}
		return r.trials[number], nil
	})
	if err != nil {
		return answer, err
	}
	switch {
	case def.Inference == nil:
		return answer, problem.New(problem.NotFound, "study %s has no inference section: write one with the devices (docs/edge.md)", def.Name)
	case t.Inference == nil:
		return answer, problem.New(problem.NotFound, "trial %d of study %s has no model: its script has to call trial.save_model", number, def.Name)
	}
	a, err := s.store.Architecture(ctx, t.Inference.Architecture)
	if err != nil {
		return answer, err
	}
	answer.Architecture = a.Key
	found, err := s.deploy(ctx, a, def, t.Inference.Machine)
	answer.Devices = append(answer.Devices, found...)
	return answer, err
}

// known is how many of the newest architectures calibrate an estimate.
const knownArchitectures = 64

// deployQuestion is what deployments depend on, beside the runs that are known.
type deployQuestion struct{ key, machine, section string }

// maxDeployed bounds the answers that are kept at hand.
const maxDeployed = 256

// deploy searches each device of the study. What was asked before is answered
// from memory, until there are new runs.
func (s *Service) deploy(ctx context.Context, a edge.Architecture, def definition.Definition, machine string) ([]deployment.Deployment, error) {
	if def.Inference == nil {
		return nil, nil
	}
	section, err := json.Marshal(def.Inference)
	if err != nil {
		return nil, problem.New(problem.Internal, "the inference section: %w", err)
	}
	question := deployQuestion{a.Key, machine, string(section)}
	s.mutex.Lock()
	known, ok := s.deployed[question]
	s.mutex.Unlock()
	if ok {
		return known, nil
	}
	found, err := s.searchDevices(ctx, a, def, machine)
	if err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if len(s.deployed) >= maxDeployed {
		clear(s.deployed)
	}
	s.deployed[question] = found
	return found, nil
}

func (s *Service) searchDevices(ctx context.Context, a edge.Architecture, def definition.Definition, machine string) ([]deployment.Deployment, error) {
	settings, err := def.Inference.Settings()
	if err != nil {
		return nil, problem.New(problem.Unavailable, "%w: continue this study with the version of tandem that wrote it", err)
	}
	others, err := s.store.Architectures(ctx, knownArchitectures)
	if err != nil {
		return nil, err
	}
	devices, err := device.Catalogue()
	if err != nil {
		return nil, problem.New(problem.Internal, "the catalogue of devices cannot be read: %w", err)
	}
	var found []deployment.Deployment
	for _, name := range def.Inference.Devices {
		target := deployment.Target{Machine: name}
		if name == device.ThisMachine {
			if target, err = thisMachine(a, machine); err != nil {
				return nil, err
			}
		} else if target.Device, err = device.Find(devices, name); err != nil {
			return nil, err
		}
		one, err := deployment.Find(a, target, others, settings)
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", name, err)
		}
		found = append(found, one)
	}
	return found, nil
}

// thisMachine is the worker's own machine as a device.
func thisMachine(a edge.Architecture, machine string) (deployment.Target, error) {
	at := slices.IndexFunc(a.Sites, func(site edge.Site) bool { return site.Machine == machine })
	if at < 0 {
		return deployment.Target{}, problem.WithFields("the worker's machine is not known", []problem.Field{{Path: "site",
			Message: "is missing: what the machine is made of could not be found out there (tandem edge devices this-machine says why)"}})
	}
	own, err := machineOf(a.Sites[at]).Device()
	return deployment.Target{Device: own, Machine: machine}, err
}
