package trace

import (
	"cmp"
	"encoding/json"
	"fmt"
	"io"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Export is a study as 'tandem study export --format json' writes it.
type Export struct {
	File string
	In   io.Reader
}

// exported is what of it a trace is made from.
type exported struct {
	Study struct {
		ID         string `json:"id"`
		Name       string `json:"name"`
		Owner      string `json:"owner"`
		Definition struct {
			Priority int `json:"priority"`
		} `json:"definition"`
	} `json:"study"`
	Events []struct {
		At     time.Time       `json:"at"`
		Kind   string          `json:"kind"`
		Number *int            `json:"number"`
		State  trial.State     `json:"state"`
		Data   json.RawMessage `json:"data"`
	} `json:"events"`
}

// stay is the time that a worker had a trial.
type stay struct {
	study   *exported
	number  int
	host    string
	kind    string
	from    time.Time
	seconds float64 // of its reports
	joules  float64
	epochs  int
	cores   int
	gpus    int // -1: not told
}

// Tandem reads studies of one's own. Each time that a worker had a trial is a
// job, which arrives when the worker got it: when a trial was ready, the log does
// not say, since one is made when a worker asks. What an epoch of a study takes
// is measured on the types of machines (by hosts of their file) that it ran on;
// for others it follows from their speed.
func Tandem(exports []Export, machines Machines) (Trace, error) {
	trace := Trace{Guessed: true}
	var stays []stay
	skipped := 0
	for _, one := range exports {
		var read exported
		if err := json.NewDecoder(one.In).Decode(&read); err != nil {
			return trace, problem.New(problem.Invalid, "%s: it is not what 'tandem study export --format json' writes: %w", one.File, err)
		}
		if read.Study.ID == "" || len(read.Events) == 0 {
			return trace, problem.New(problem.Invalid, "%s: it has no study or no events, and is not what 'tandem study export --format json' writes", one.File)
		}
		found, err := staysOf(one.File, &read)
		if err != nil {
			return trace, err
		}
		for _, span := range found {
			if span.epochs == 0 || span.seconds <= 0 {
				skipped++
				continue
			}
			if span.kind, err = machines.kindOfHost(span.host); err != nil {
				return trace, problem.New(problem.Invalid, "%s: trial %d: %w", one.File, span.number, err)
			}
			stays = append(stays, span)
		}
	}
	slices.SortStableFunc(stays, func(a, b stay) int { return a.from.Compare(b.from) })
	profiles := machines.profilesOf(stays)
	for i, one := range stays {
		profile := profiles[one.study]
		trace.Jobs = append(trace.Jobs, replay.Job{
			Name: fmt.Sprintf("%s/%d/%d", one.study.Study.Name, one.number, i), User: cmp.Or(one.study.Study.Owner, "all"), Profile: profile,
			Work: one.seconds / profile.On[one.kind].Seconds, Arrives: one.from.Sub(stays[0].from).Seconds(),
			Needs: machines.needsOf(one), Utilization: 1, Priority: max(0, one.study.Study.Definition.Priority),
		})
	}
	trace.note("A job arrives when a worker got it: a policy is compared on what there was to do, not on what a search would have made of sooner answers.")
	if skipped > 0 {
		trace.note("%d times a worker had a trial and reported no epoch: they are left out.", skipped)
	}
	trace.note("What a study takes on a type of machine that it never ran on follows from the speed in the machines' file: an estimate.")
	return trace, nil
}

// staysOf are the times that workers had trials of a study.
func staysOf(file string, read *exported) ([]stay, error) {
	open := map[int]*stay{}
	var order []*stay
	for i, event := range read.Events {
		if event.Number == nil {
			continue
		}
		number := *event.Number
		wrong := func(err error) error {
			return problem.New(problem.Invalid, "%s: events[%d], %s of trial %d: %w", file, i, event.Kind, number, err)
		}
		switch {
		case event.Kind == "trial_state" && event.State == trial.Leased && open[number] != nil: // something was heard of it
		case event.Kind == "trial_state" && event.State == trial.Leased:
			var told struct {
				Host string `json:"host"`
			}
			if err := json.Unmarshal(event.Data, &told); err != nil {
				return nil, wrong(err)
			}
			open[number] = &stay{study: read, number: number, host: told.Host, from: event.At, cores: 1, gpus: -1}
			order = append(order, open[number])
		case event.Kind == "trial_state" && event.State != trial.Running:
			delete(open, number)
		case event.Kind == "report" && open[number] != nil:
			var told trial.Report
			if err := json.Unmarshal(event.Data, &told); err != nil {
				return nil, wrong(err)
			}
			open[number].add(told)
		}
	}
	stays := make([]stay, len(order))
	for i, one := range order {
		stays[i] = *one
	}
	return stays, nil
}

// add takes in an epoch.
func (s *stay) add(told trial.Report) {
	if seconds := float64(told.Seconds); seconds > 0 && seconds < 1e9 {
		s.seconds += seconds
		s.epochs++
	}
	if joules := float64(told.Energy.Joules); joules > 0 && joules < 1e15 {
		s.joules += joules
	}
	if threads, has := told.System["cpu_threads"]; has {
		var count int
		if _, err := fmt.Sscan(threads.String(), &count); err == nil && count > 0 {
			s.cores = count
		}
	}
	if gpus, has := told.System["gpus"]; has {
		var count int
		if _, err := fmt.Sscan(gpus.String(), &count); err == nil && count >= 0 {
			s.gpus = count
		}
	}
}

// kindOfHost is the type that the machines' file says a host was of.
func (m Machines) kindOfHost(host string) (string, error) {
	for _, kind := range m.order {
		if slices.Contains(m.types[kind].Hosts, host) {
			return kind, nil
		}
	}
	if len(m.order) == 1 && len(m.types[m.order[0]].Hosts) == 0 {
		return m.order[0], nil
	}
	return "", fmt.Errorf("it ran on host %q, which is none of the hosts of types %s in the machines' file: add it to the hosts of its type", host, strings.Join(m.order, ", "))
}

// needsOf is what a trial takes of a machine: the cores that it was given, and
// one GPU where it ran on a machine with GPUs and was not given a number.
func (m Machines) needsOf(one stay) placement.Resources {
	of := m.types[one.kind]
	needs := placement.Resources{Cores: min(one.cores, of.Cores), GPUs: one.gpus}
	if one.gpus < 0 {
		needs.GPUs = min(1, of.GPUs)
	}
	return needs
}

// profilesOf are what an epoch of each study takes on each type: the mean of
// where it ran, and elsewhere by speed.
func (m Machines) profilesOf(stays []stay) map[*exported]*replay.Profile {
	type sum struct{ seconds, joules, epochs float64 }
	measured := map[*exported]map[string]sum{}
	for _, one := range stays {
		if measured[one.study] == nil {
			measured[one.study] = map[string]sum{}
		}
		s := measured[one.study][one.kind]
		measured[one.study][one.kind] = sum{s.seconds + one.seconds, s.joules + one.joules, s.epochs + float64(one.epochs)}
	}
	profiles := map[*exported]*replay.Profile{}
	for study, by := range measured {
		profile := &replay.Profile{Name: study.Study.Name, On: map[string]placement.Prediction{}}
		reference := "" // where it ran the most
		for _, kind := range m.order {
			if reference == "" || by[kind].epochs > by[reference].epochs {
				reference = kind
			}
		}
		for _, kind := range m.order {
			of := m.types[kind]
			at, has := by[kind]
			seconds := at.seconds / max(1, at.epochs)
			joules := at.joules / max(1, at.epochs)
			if !has {
				known := by[reference]
				seconds = known.seconds / known.epochs * m.types[reference].Speed / of.Speed
			}
			if joules == 0 {
				joules = of.joules(seconds, placement.Resources{GPUs: min(1, of.GPUs), Cores: 1}, 1)
			}
			profile.On[kind] = placement.Prediction{Seconds: seconds, Joules: joules}
		}
		profiles[study] = profile
	}
	return profiles
}
