// Package inference takes in what trials train and what inferences of it take, and
// answers how a model is best run on a study's devices (EdgeTune, Rocha, chapter 5).
//
// Decisions about one architecture are made one at a time; others do not wait.
package inference

import (
	"context"
	"maps"
	"math"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/gate"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

// claimTerm is for how long a worker that shall run inferences of an architecture
// is waited for, before another one may.
const claimTerm = 5 * time.Minute

// claim is what one worker runs.
type claim struct{ key, machine string }

// claimed is for which trial, and until when that is waited for.
type claimed struct {
	id    trial.ID
	until time.Time
}

// Store keeps architectures.
type Store interface {
	Architecture(ctx context.Context, key string) (emu.Architecture, error)
	Architectures(ctx context.Context, limit int) ([]emu.Architecture, error)
}

// Result is what became known of a trial's model under a lease.
type Result struct {
	Trial        trial.ID
	Lease        trial.LeaseEpoch
	Architecture emu.Architecture
	Inference    trial.InferenceCost
	// Precision says that it is the trained model in a precision, which leaves Inference
	// as it is; nil: what the trial trains.
	Precision *trial.Precision
	// Then is run once the result is durable.
	Then func()
}

// Options are what a Service takes from its surroundings.
type Options struct {
	// Holder returns what the study of a trial wants that is held under the lease, and the
	// type of machine of its worker.
	Holder func(ctx context.Context, id trial.ID, lease trial.LeaseEpoch) (Wanted, string, error)
	// RanOn returns the type of machine on which inferences were run for a trial.
	RanOn func(ctx context.Context, id trial.ID, report protocol.InferenceReport) (string, error)
	// Record makes the result durable, with the answer to the request. A request that
	// was answered before gets that answer instead.
	Record func(ctx context.Context, result Result, answer *protocol.ArchitectureReply) error
	// Wanted is what studies want to know of a device, of any if it is empty; Refresh makes what became known
	// of an architecture durable with the trials of the study that train it.
	Wanted  func(device string) []Wanted
	Refresh Refresh
	// Import makes the change durable, with the answer to the request.
	Import func(ctx context.Context, change journal.Change, answer *protocol.ArchitecturesImported) error
	// Leaders are the studies in memory that have an inference section, each with its
	// recommended trial, if that has a model.
	Leaders func() []journal.View
	// Entries returns the stored entries of the kind, Apply makes some durable, with the
	// answer under the call's key.
	Entries func(ctx context.Context, kind string) ([]journal.PoolEntry, error)
	Apply   func(ctx context.Context, entries []journal.PoolEntry, answer any) (ours bool, err error)
	// Look returns a copy of the study with the reference.
	Look func(ctx context.Context, ref string) (journal.View, error)
	// Gate lets one overview be made at a time.
	Gate gate.Gate
	Now  func() time.Time
}

// Service is the ground truth of inference. It is safe for concurrent use.
type Service struct {
	*roster
	store   Store
	options Options
	// also is what choices of backends want to know of a device.
	also func(ctx context.Context, device string) ([]Wanted, error)

	// searching lets one search of devices run at a time: it takes a whole core.
	searching gate.Gate
	fitting   gate.Gate // lets one fit be made at a time

	mutex    sync.Mutex // guards what follows; never held over a call out
	fits     deployment.Fits
	makes    map[string]*making // by what a fit is for
	deciding map[string]*turn
	claims   map[claim]claimed
	deployed map[question]answered
	learned  int                   // counts what calibrates estimates
	changes  int                   // counts what can make boards wanted
	idle     map[string]idle       // by device
	orders   map[claim]order       // what boards measure
	failures map[claim]int         // of models on devices
	settled  map[settled]time.Time // until when; zero: for good
}

// calibrated empties what was answered, as runs calibrate all estimates. The caller
// holds the lock.
func (s *Service) calibrated() {
	clear(s.deployed)
	s.learned++
	s.changes++
}

// turn lets one decision about an architecture be made at a time.
type turn struct {
	gate    gate.Gate
	callers int // that have it or wait for it
}

// New returns the service over what the store has.
func New(store Store, options Options) *Service {
	return &Service{
		store: store, options: options, searching: gate.New(), fitting: gate.New(), fits: deployment.Fits{Now: options.Now}, makes: make(map[string]*making),
		deciding: make(map[string]*turn), claims: make(map[claim]claimed), deployed: make(map[question]answered),
		roster: newRoster(options), idle: make(map[string]idle), orders: make(map[claim]order), failures: make(map[claim]int), settled: make(map[settled]time.Time),
		also: func(context.Context, string) ([]Wanted, error) { return nil, nil },
	}
}

// enter waits until nobody else decides about the architecture.
func (s *Service) enter(ctx context.Context, key string) (leave func(), err error) {
	s.mutex.Lock()
	one, ok := s.deciding[key]
	if !ok {
		one = &turn{gate: gate.New()}
		s.deciding[key] = one
	}
	one.callers++
	s.mutex.Unlock()
	done := func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		if one.callers--; one.callers == 0 {
			delete(s.deciding, key)
		}
	}
	if err := one.gate.Enter(ctx); err != nil {
		done()
		return nil, problem.New(problem.Unavailable, "the caller gave up: %w", err)
	}
	return func() { one.gate.Leave(); done() }, nil
}

// begin enters the architecture for the worker that holds the trial, and says what
// the study is and what machine that is. leave has to be called if there is no error.
func (s *Service) begin(ctx context.Context, key string, id trial.ID, epoch trial.LeaseEpoch) (want Wanted, machine string, leave func(), err error) {
	if leave, err = s.enter(ctx, key); err != nil {
		return want, "", nil, err
	}
	if want, machine, err = s.options.Holder(ctx, id, epoch); err != nil {
		leave()
	}
	return want, machine, leave, err
}

// Architecture takes in what a trial trains. The answer has the best deployments
// as far as they are known, and what the worker shall run itself. Telling the
// same again changes nothing.
func (s *Service) Architecture(ctx context.Context, id trial.ID, report protocol.ArchitectureReport) (protocol.ArchitectureReply, error) {
	reply := protocol.ArchitectureReply{Run: []protocol.InferenceCell{}, Deployments: []deployment.Deployment{}}
	if faults := architectureFaults(report); len(faults) > 0 {
		return reply, problem.WithFields("the architecture of trial "+string(id)+" is not valid", faults)
	}
	want, machine, leave, err := s.begin(ctx, report.Key, id, report.LeaseEpoch)
	if err != nil {
		return reply, err
	}
	defer leave()
	def := want.Definition
	if err := precisionFaults(report.Precision, def); err != nil {
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
	a.Seen, a.Graph.FixedBatch = s.options.Now(), report.Graph.FixedBatch
	if a.Skeleton == nil {
		a.Skeleton = report.Skeleton
	}
	if report.Site != nil {
		site := *report.Site
		site.Machine = machine
		a = a.At(site)
	}
	a = s.withBoards(a, def)
	if reply.Unmeasured, err = s.Unmeasured(ctx, want); err != nil {
		return reply, err
	}
	if reply.Unmeasured == "" {
		reply.Run = append(reply.Run, s.toRun(a, def, machine, id)...)
	}
	result := Result{Trial: id, Lease: report.LeaseEpoch, Architecture: a, Precision: inPrecision(report)}
	if result.Precision == nil {
		found, err := s.Deploy(ctx, a, nil, def, machine)
		if err != nil {
			return reply, err
		}
		reply.Deployments = append(reply.Deployments, found...)
		result.Inference = inferenceOf(a, machine, found)
	}
	result.Then = func() {
		s.mutex.Lock()
		defer s.mutex.Unlock()
		// Runs that a board reported meanwhile are not in it: they are looked at again.
		maps.DeleteFunc(s.settled, func(one settled, _ time.Time) bool { return one.key == a.Key })
		s.changes++
		if len(reply.Run) > 0 {
			s.claims[claim{a.Key, machine}] = claimed{id, a.Seen.Add(claimTerm)}
		}
	}
	return reply, s.options.Record(ctx, result, &reply)
}

// Inferences takes in what real inferences took on a trial's worker, and gives the trials
// that train the architecture on such a machine what follows from it, as [Service.ReportBoard]
// does: no report waits for it, and the trial may be over.
func (s *Service) Inferences(ctx context.Context, id trial.ID, report protocol.InferenceReport) (protocol.ArchitecturesImported, error) {
	reply := protocol.ArchitecturesImported{Architectures: 1, Runs: len(report.Runs)}
	if faults := emu.RunFaults(report.Runs); len(faults) > 0 {
		return reply, problem.WithFields("the inferences of trial "+string(id)+" are not valid", faults)
	}
	machine, err := s.options.RanOn(ctx, id, report)
	if err != nil {
		return reply, err
	}
	if err := s.keep(ctx, report.Key, report.Runs, emu.Site{Machine: machine}, &reply); err != nil {
		return reply, err
	}
	if err := s.refresh(ctx, "", report.Key, machine, report.Failure); err != nil {
		return reply, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	delete(s.claims, claim{report.Key, machine})
	s.calibrated()
	return reply, nil
}

// told is the architecture as the worker says it is.
func told(report protocol.ArchitectureReport) emu.Architecture {
	return emu.Architecture{Key: report.Key, Graph: report.Graph, ActivationBytes: report.ActivationBytes, StoredBytes: report.StoredBytes, Skeleton: report.Skeleton}
}

func architectureFaults(report protocol.ArchitectureReport) []problem.Field {
	faults := told(report).Faults()
	if report.Site != nil {
		if _, err := device.Machine(*report.Site).Device(); err != nil {
			faults = append(faults, problem.Field{Path: "site", Message: err.Error()})
		}
	}
	return faults
}

// inferenceOf is what the trial's objectives can be about: the first device.
func inferenceOf(a emu.Architecture, machine string, found []deployment.Deployment) trial.InferenceCost {
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
	if first.Batching != nil {
		inference.P99Seconds = trial.Float(first.Batching.P99Seconds)
	}
	if first.Runs() {
		inference.LatencyLowSeconds, inference.LatencyHighSeconds = trial.Float(first.LatencySeconds.Low), trial.Float(first.LatencySeconds.High)
		inference.JoulesPerSampleLow, inference.JoulesPerSampleHigh = trial.Float(first.JoulesPerSample.Low), trial.Float(first.JoulesPerSample.High)
	} else { // never the best
		none := trial.Float(math.NaN())
		inference.LatencySeconds, inference.SamplesPerSecond, inference.JoulesPerSample = none, none, none
	}
	return inference
}
