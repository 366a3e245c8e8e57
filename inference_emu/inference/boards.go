package inference

import (
	"cmp"
	"context"
	"maps"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/trial"
)

const (
	// orderTerm is for how long a board's answer is waited for, before another board of
	// the kind may measure.
	orderTerm = 10 * time.Minute
	// orderCells is how many settings a board measures before estimates are made anew.
	orderCells = 3
	// askEvery is how often it is looked whether there is something to measure.
	askEvery = 2 * time.Second
	// mostFailures is how often a model may fail on a device before no board is asked
	// again, until the server is started anew.
	mostFailures = 2
)

// Wanted is what a study wants to know of a device: its architectures, those of the trials
// that came furthest first.
type Wanted struct {
	Study      string
	Definition definition.Definition
	Created    time.Time
	Keys       []string
	// Recommended are the keys of the recommended trial. Settled: nothing new is wanted of it.
	Recommended []string
	Settled     bool
}

// WantedBy is what the study with the trials wants to know.
func WantedBy(study journal.Study, trials []trial.Trial) Wanted {
	one := Wanted{Study: study.ID, Definition: study.Definition, Created: study.Created}
	if study.Definition.Inference == nil {
		return one // without a copy of all trials
	}
	trials = slices.DeleteFunc(slices.Clone(trials), func(t trial.Trial) bool { return t.Inference == nil })
	slices.SortStableFunc(trials, func(a, b trial.Trial) int { return cmp.Compare(len(b.Results), len(a.Results)) })
	for _, t := range trials {
		if !slices.Contains(one.Keys, t.Inference.Architecture) {
			one.Keys = append(one.Keys, t.Inference.Architecture)
		}
		for _, p := range t.Precisions {
			if !slices.Contains(one.Keys, p.Architecture) {
				one.Keys = append(one.Keys, p.Architecture)
			}
		}
	}
	return one
}

// AskBoard gives a board a model to measure, waiting for one up to WaitSeconds. A board
// that asks again before it answered gets its order again.
func (s *Service) AskBoard(ctx context.Context, ask emu.BoardAsk) (emu.BoardReply, error) {
	if faults := boardFaults(ask.Device, ask.Site); len(faults) > 0 {
		return emu.BoardReply{}, problem.WithFields("the board is not valid", faults)
	}
	leave, err := s.admit(ctx, ask)
	if err != nil {
		return emu.BoardReply{}, err
	}
	defer leave()
	old, err := s.note(ctx, ask)
	if err != nil {
		return emu.BoardReply{}, err
	}
	s.heard(old, ask)
	end := s.options.Now().Add(waiting(ask))
	for {
		var order *emu.BoardOrder
		if !ask.Busy {
			order, err = s.orderFor(ctx, ask)
		}
		left := end.Sub(s.options.Now())
		switch {
		case ctx.Err() != nil: // it has hung up
			return emu.BoardReply{}, nil
		case err != nil || order != nil || left <= 0:
			return emu.BoardReply{Order: order}, err
		}
		pause, cancel := context.WithTimeout(ctx, min(left, askEvery))
		<-pause.Done()
		cancel()
	}
}

// heard looks again at what follows from what the board said of itself before.
func (s *Service) heard(old emu.Board, ask emu.BoardAsk) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	if !reflect.DeepEqual(old.Site, ask.Site) {
		s.changes++
		clear(s.deployed) // it may have other providers
	}
	if old.Site.Software != ask.Site.Software {
		maps.DeleteFunc(s.settled, func(one settled, _ time.Time) bool { return one.again && one.device == ask.Device })
	}
}

func boardFaults(name string, site emu.Site) (faults []problem.Field) {
	if _, err := device.Machine(site).Device(); err != nil {
		faults = append(faults, problem.Field{Path: "site", Message: err.Error()})
	}
	return append(faults, deviceFaults(name)...)
}

// looked is which architecture is looked at for which device; fresh, with a fit to all that
// was measured. Machine is the type of the worker's, where that is the device.
type looked struct {
	key, device, machine string
	fresh                bool
}

// lookAt is what the search of one device for an architecture needs.
func (s *Service) lookAt(ctx context.Context, section definition.Inference, at looked) (a emu.Architecture, target deployment.Target, others []emu.Architecture, err error) {
	if a, err = s.store.Architecture(ctx, at.key); err != nil {
		return a, target, nil, err
	}
	if others, err = s.store.Architectures(ctx, knownArchitectures); err != nil {
		return a, target, nil, err
	}
	devices, err := devicesOf(section)
	if err != nil {
		return a, target, nil, err
	}
	if target, err = s.target(devices, a, at.device, at.machine); err != nil {
		return a, target, nil, err
	}
	target.Fresh = at.fresh
	target, err = s.fitted(ctx, target, a, others)
	return a, target, others, err
}

// ReportBoard takes in what an order took. To tell the same again changes nothing.
func (s *Service) ReportBoard(ctx context.Context, sent emu.BoardRuns) (protocol.ArchitecturesImported, error) {
	reply := protocol.ArchitecturesImported{Architectures: 1, Runs: len(sent.Runs)}
	if faults := append(boardFaults(sent.Device, sent.Site), emu.RunFaults(sent.Runs)...); len(faults) > 0 {
		return reply, problem.WithFields("what the board measured is not valid", faults)
	}
	if len(sent.Runs) > 0 {
		site := sent.Site
		site.Machine = sent.Device
		if err := s.keep(ctx, sent.Key, sent.Runs, site, &reply); err != nil {
			return reply, err
		}
	}
	s.answeredBy(sent)
	if len(sent.Runs) == 0 {
		return reply, nil
	}
	return reply, s.refresh(ctx, sent.Device, sent.Key, "", "")
}

// keep makes runs on the machine durable, and what it is made of where that is told.
func (s *Service) keep(ctx context.Context, key string, runs []emu.Run, site emu.Site, reply *protocol.ArchitecturesImported) error {
	leave, err := s.enter(ctx, key)
	if err != nil {
		return err
	}
	defer leave()
	a, err := s.store.Architecture(ctx, key)
	if problem.Is(err, problem.NotFound) {
		return problem.WithFields("what was measured is not valid", []problem.Field{{Path: "key", Value: key, Message: "is of no known architecture: tell it first"}})
	}
	if err != nil {
		return err
	}
	a.Seen = s.options.Now()
	for i := range runs {
		runs[i].Machine, runs[i].At, runs[i].Software = site.Machine, a.Seen, site.Software
	}
	if a = a.Measured(runs); site.Cores > 0 {
		a = a.At(site)
	}
	return s.options.Import(ctx, journal.Change{Architectures: []emu.Architecture{a}}, reply)
}

// answeredBy notes that the board has done what it was asked for.
func (s *Service) answeredBy(sent emu.BoardRuns) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.changes++
	at, failed := claim{sent.Key, sent.Device}, claim{sent.Key + sent.Provider, sent.Device}
	if s.orders[at].board == sent.Board {
		delete(s.orders, at)
	}
	now := s.options.Now()
	s.change(sent.Board, func(one *emu.Board) {
		one.Measuring, one.Failure, one.Seen = "", sent.Failure, now
		one.Measured += len(sent.Runs)
	})
	if len(sent.Runs) == 0 {
		s.failures[failed]++
		return
	}
	delete(s.failures, failed)
	s.learned++
}

// refresh gives the trials whose objectives are about the device what is known now of the
// architecture on it. Of what a worker measured, which tells the memory on all devices, all
// studies hear.
func (s *Service) refresh(ctx context.Context, name, key, machine, failure string) error {
	for _, want := range s.options.Wanted(name) {
		def, first := want.Definition, want.Definition.Inference.Devices[0].Name
		if first != name && machine == "" || !slices.Contains(want.Keys, key) {
			continue
		}
		if _, err := def.Inference.Settings(); err != nil {
			continue
		}
		if _, known := s.siteOf(first); name == "" && !known && strings.HasPrefix(first, device.BoardPrefix) {
			continue // no board was ever there
		}
		a, target, others, err := s.lookAt(ctx, *def.Inference, looked{key: key, device: first, machine: machine})
		if err != nil {
			return err
		}
		found, err := s.compare(ctx, []deployment.Variant{{Architecture: a}}, target, others, def)
		if err != nil {
			return err
		}
		at := machine
		if first != device.ThisMachine {
			at = "" // it is the same for all that train it
		}
		cost := inferenceOf(a, at, []deployment.Deployment{found})
		cost.Failure = failure
		if err := s.options.Refresh(ctx, want.Study, cost); err != nil {
			return err
		}
	}
	return nil
}

// Refresh is what a service does with the cost of an inference that became better known.
type Refresh func(ctx context.Context, study string, cost trial.InferenceCost) error
