package inference

import (
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// known is how many of the newest architectures calibrate an estimate.
const knownArchitectures = 64

// question is what deployments depend on, beside the runs that are known.
type question struct{ key, machine, section, precisions string }

// maxDeployed bounds the answers that are kept at hand.
const maxDeployed = 256

// Deploy searches each device of the study, for what is deployed in the best of the
// variants, if there are any. What was asked before is answered from memory, until there are new runs of the architecture, or of others that are not a
// board's, or for a minute.
func (s *Service) Deploy(ctx context.Context, a emu.Architecture, variants []deployment.Variant, def definition.Definition, machine string) ([]deployment.Deployment, error) {
	if def.Inference == nil {
		return nil, nil
	}
	section, err := json.Marshal(def.Inference)
	if err != nil {
		return nil, problem.New(problem.Internal, "the inference section: %w", err)
	}
	asked := question{a.Key, machine, string(section), ""}
	ran := lastRun(a)
	for _, one := range variants {
		asked.precisions += fmt.Sprint(one.Precision, one.Architecture.Key, one.Value, one.Samples, ";")
		if last := lastRun(one.Architecture); last.After(ran) {
			ran = last
		}
	}
	now := s.options.Now()
	s.mutex.Lock()
	known, ok := s.deployed[asked]
	begun := answered{ran: ran, learned: s.learned, at: now}
	s.mutex.Unlock()
	if ok && known.ran.Equal(begun.ran) && (known.learned == begun.learned || now.Sub(known.at) < staleTerm) {
		return known.found, nil
	}
	if begun.found, err = s.searchDevices(ctx, a, variants, def, machine); err != nil {
		return nil, err
	}
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if s.learned != begun.learned {
		return begun.found, nil // runs came meanwhile, which calibrate it
	}
	if len(s.deployed) >= maxDeployed {
		clear(s.deployed)
	}
	s.deployed[asked] = begun
	return begun.found, nil
}

// staleTerm is for how long an answer is given again after boards measured other
// architectures, which makes estimates of this one better.
const staleTerm = time.Minute

// answered is what was answered, with the architecture's last run then, and how often
// something had been learned.
type answered struct {
	found   []deployment.Deployment
	ran     time.Time
	learned int
	at      time.Time
}

// lastRun is when the architecture really ran last.
func lastRun(a emu.Architecture) (last time.Time) {
	for _, run := range a.Runs {
		if run.At.After(last) {
			last = run.At
		}
	}
	return last
}

// catalogue parses all descriptions of devices: once.
var catalogue = sync.OnceValues(device.Catalogue)

// devicesOf are the catalogue's and those that the study file describes.
func devicesOf(section definition.Inference) ([]device.Device, error) {
	devices, err := catalogue()
	if err != nil {
		return nil, problem.New(problem.Internal, "the catalogue of devices cannot be read: %w", err)
	}
	return device.Add(devices, section.Own()...), nil
}

func (s *Service) searchDevices(ctx context.Context, a emu.Architecture, variants []deployment.Variant, def definition.Definition, machine string) ([]deployment.Deployment, error) {
	if _, err := def.Inference.Settings(); err != nil {
		return nil, problem.New(problem.Unavailable, "%w: continue this study with the version of tandem that wrote it", err)
	}
	if len(variants) == 0 {
		variants = []deployment.Variant{{Architecture: a}}
	}
	others, err := s.store.Architectures(ctx, knownArchitectures)
	if err != nil {
		return nil, err
	}
	devices, err := devicesOf(*def.Inference)
	if err != nil {
		return nil, err
	}
	var found []deployment.Deployment
	for _, name := range def.Inference.Names() {
		target, err := s.target(devices, a, name, machine)
		if err != nil {
			return nil, err
		}
		if target, err = s.fitted(ctx, target, a, others); err != nil {
			return nil, err
		}
		one, err := s.compare(ctx, variants, target, others, def)
		if err != nil {
			return nil, fmt.Errorf("device %s: %w", name, err)
		}
		found = append(found, one)
	}
	return found, nil
}

// target is a device of a study, for a trial on such a machine.
func (s *Service) target(devices []device.Device, a emu.Architecture, name, machine string) (deployment.Target, error) {
	if name == device.ThisMachine {
		target, err := thisMachine(a, machine)
		target.Judged, target.Fits = true, &s.fits
		return target, err
	}
	// Boards are in the architecture once they measured it.
	at := slices.IndexFunc(a.Sites, func(site emu.Site) bool { return site.Machine == name })
	target := deployment.Target{Machine: name, Board: at >= 0, Fits: &s.fits, Judged: true}
	site, ok := s.siteOf(name)
	if !ok && at >= 0 {
		site, ok = a.Sites[at], true
	}
	target.Providers = site.Providers
	var err error
	if !strings.HasPrefix(name, device.BoardPrefix) {
		target.Device, err = device.Find(devices, name)
		return target, err
	}
	if !ok {
		return target, problem.New(problem.Unavailable, "the board %s has never asked this server for work: run \"tandem edge agent\" on it", name)
	}
	target.Device, err = device.Machine(site).Device()
	target.Device.Name, target.Device.Title = name, site.Processor
	return target, err
}

// withBoards is the architecture with the sites of the study's own boards, so that they
// can be estimated when they are gone.
func (s *Service) withBoards(a emu.Architecture, def definition.Definition) emu.Architecture {
	if def.Inference == nil {
		return a
	}
	for _, name := range def.Inference.Names() {
		if !strings.HasPrefix(name, device.BoardPrefix) {
			continue
		}
		if site, ok := s.siteOf(name); ok {
			a = a.At(site)
		}
	}
	return a
}

// thisMachine is the worker's own machine as a device.
func thisMachine(a emu.Architecture, machine string) (deployment.Target, error) {
	at := slices.IndexFunc(a.Sites, func(site emu.Site) bool { return site.Machine == machine })
	if at < 0 {
		return deployment.Target{}, problem.WithFields("the worker's machine is not known", []problem.Field{{Path: "site",
			Message: "is missing: what the machine is made of could not be found out there (tandem edge devices this-machine says why)"}})
	}
	own, err := device.Machine(a.Sites[at]).Device()
	return deployment.Target{Device: own, Machine: machine, Providers: a.Sites[at].Providers}, err
}

// toRun are the settings in which the worker shall run inferences: where one of
// the devices is its own machine, or memory is scarce on one; no such run of the last day is
// known; and no other worker of the kind is at it: one that had this trial before may have lost it with
// its lease.
func (s *Service) toRun(a emu.Architecture, def definition.Definition, machine string, id trial.ID) []protocol.InferenceCell {
	at := slices.IndexFunc(a.Sites, func(site emu.Site) bool { return site.Machine == machine })
	if def.Inference == nil || at < 0 {
		return nil
	}
	s.mutex.Lock()
	held, ok := s.claims[claim{a.Key, machine}]
	s.mutex.Unlock()
	if ok && held.id != id && s.options.Now().Before(held.until) {
		return nil
	}
	batches := func(of func(low, high int) []int) []int {
		if a.Graph.FixedBatch > 0 {
			return []int{1} // of all samples that the file takes at a time
		}
		return of(def.Inference.BatchSize.Low, def.Inference.BatchSize.High)
	}
	var cells []protocol.InferenceCell
	if !slices.Contains(def.Inference.Names(), device.ThisMachine) {
		if !scarce(a, def) {
			return nil
		}
		for _, batch := range batches(func(low, high int) []int { return slices.Compact([]int{low, high}) }) {
			cells = append(cells, protocol.InferenceCell{Batch: batch, Threads: 1})
		}
		return cells
	}
	low, high := 1, a.Sites[at].Cores
	if bounds := def.Inference.Cores; bounds != nil {
		low, high = min(bounds.Low, high), min(bounds.High, high)
	}
	for _, threads := range doublings(low, high) {
		for _, batch := range batches(doublings) {
			cells = append(cells, protocol.InferenceCell{Batch: batch, Threads: threads})
		}
	}
	var wanted []protocol.InferenceCell
	since := s.options.Now().Add(-deployment.CheckAfter) // what is older is measured again
	for _, provider := range append([]string{""}, a.Sites[at].Providers...) {
		// Two are what memory needs ([scarce]), which says nothing of the best.
		if ran := countRuns(a, machine, provider, since); ran > 2 || ran >= len(cells) || provider != "" && !slices.Contains(def.Inference.Providers, provider) {
			continue
		}
		for _, cell := range cells {
			cell.Provider = provider
			wanted = append(wanted, cell)
		}
	}
	return wanted
}

func countRuns(a emu.Architecture, machine, provider string, since time.Time) (n int) {
	for _, run := range a.Runs {
		if run.Machine == machine && run.Provider == provider && run.At.After(since) {
			n++
		}
	}
	return n
}

// scarce reports whether a run has to tell the memory that the model takes on a device of
// the study: none has, and it is asked for or may not be enough.
func scarce(a emu.Architecture, def definition.Definition) bool {
	settings, err := def.Inference.Settings()
	if err != nil || slices.ContainsFunc(a.Runs, func(run emu.Run) bool { return run.MemoryBytes > 0 && run.Provider == "" }) {
		return false
	}
	devices, err := devicesOf(*def.Inference)
	return err == nil && (slices.Contains(def.Names(), definition.EdgeMemory) || slices.ContainsFunc(def.Inference.Names(), func(name string) bool {
		one, err := device.Find(devices, name)
		return err == nil && deployment.Scarce(a, one, settings)
	}))
}

// doublings are low, twice that and so on, and high.
func doublings(low, high int) []int {
	var list []int
	for n := max(1, low); n < high; n *= 2 {
		list = append(list, n)
	}
	return append(list, high)
}
