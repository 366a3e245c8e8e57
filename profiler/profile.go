package profiler

import (
	"cmp"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/profiler/proc"
	"maps"
	"slices"
	"strings"
)

// Profile is what a command and all it started did over a span of time, and
// what the machine did meanwhile.
type Profile struct {
	// Seconds is the length of the span, Samples how often it was looked at.
	Seconds float64    `json:"seconds"`
	Samples int        `json:"samples"`
	Level   perf.Level `json:"level"`
	// Events are the events that were counted, in the order of the tables.
	Events []EventProfile `json:"events"`
	// Host are metrics of the process tree ("tree."), of the whole machine
	// ("machine.") and of the GPUs that the command may use ("gpu."), by name.
	Host []HostMetric `json:"host"`
	// Missing is what could not be measured.
	Missing []proc.Missing `json:"missing"`
}

// EventProfile is one event over the span.
type EventProfile struct {
	Name string         `json:"name"`
	Kind perf.EventKind `json:"kind"`
	// Total is how often it happened; for the clocks, nanoseconds.
	Total float64 `json:"total"`
	// PerSecond is per second of wall-clock time, summed over cores.
	PerSecond float64 `json:"per_second"`
	// PerInstruction is absent where instructions are not counted.
	PerInstruction *float64 `json:"per_instruction,omitempty"`
	// RunFraction is the part of the time in which the event had a counter.
	// Below 1 the total is an estimate: it was scaled up.
	RunFraction float64 `json:"run_fraction"`
	Scaled      bool    `json:"scaled"`
}

// HostMetric is one metric of the host over the span.
type HostMetric struct {
	Name string `json:"name"`
	// Value is per second of wall-clock time for what adds up (CPU times are
	// thus in cores), and the mean of the samples for what is a state.
	Value float64 `json:"value"`
	// Highest is the largest sample of a state.
	Highest *float64 `json:"highest,omitempty"`
}

// Event is the event with the name.
func (p Profile) Event(name string) (EventProfile, bool) {
	at := slices.IndexFunc(p.Events, func(e EventProfile) bool { return e.Name == name })
	if at < 0 {
		return EventProfile{}, false
	}
	return p.Events[at], true
}

// span adds up samples. The host's sums may have gaps: what could not be read
// in one sample is in the next one's difference.
type span struct {
	seconds float64
	samples int
	tallies []perf.Tally
	first   map[string]float64
	highest map[string]float64 // of the sums, as a process that ended takes its own with it
	states  map[string]*state
}

type state struct {
	sum, highest float64
	samples      int
}

func newSpan(counts []perf.Counted, at proc.Observation) *span {
	s := &span{first: maps.Clone(at.Sums), highest: maps.Clone(at.Sums), states: map[string]*state{}}
	for _, one := range counts {
		s.tallies = append(s.tallies, perf.NewTally(one))
	}
	return s
}

func (s *span) observe(seconds float64, counts []perf.Counted, at proc.Observation) {
	s.seconds += seconds
	s.samples++
	for i, one := range counts {
		s.tallies[i].Observe(one)
	}
	for name, value := range at.Sums {
		if _, known := s.first[name]; !known {
			s.first[name], s.highest[name] = value, value
		}
		s.highest[name] = max(s.highest[name], value)
	}
	s.add(at.States)
}

// add counts a sample of states in.
func (s *span) add(states map[string]float64) {
	for name, value := range states {
		known, has := s.states[name]
		if !has {
			known = &state{highest: value}
			s.states[name] = known
		}
		known.sum += value
		known.highest = max(known.highest, value)
		known.samples++
	}
}

// restart begins a new span where this one ends.
func (s *span) restart() {
	for i := range s.tallies {
		s.tallies[i].Restart()
	}
	s.seconds, s.samples = 0, 0
	s.first, s.states = maps.Clone(s.highest), map[string]*state{}
}

// profile is the span so far. Events are those of the tallies.
func (s *span) profile(events []perf.Event, level perf.Level, missing []proc.Missing) Profile {
	p := Profile{Seconds: s.seconds, Samples: s.samples, Level: level, Missing: slices.Clone(missing)}
	for i, event := range events {
		total, fraction, known := s.tallies[i].Sum()
		if !known {
			p.Missing = append(p.Missing, proc.Missing{Name: event.Name, Reason: "it never had a counter: more events than counters for too short a time"})
			continue
		}
		p.Events = append(p.Events, EventProfile{
			Name: event.Name, Kind: event.Kind, Total: total, PerSecond: s.perSecond(total), RunFraction: fraction, Scaled: fraction < 1,
		})
	}
	if work, has := p.Event("instructions"); has && work.Total > 0 {
		for i := range p.Events {
			rate := p.Events[i].Total / work.Total
			p.Events[i].PerInstruction = &rate
		}
	}
	for name, value := range s.highest {
		p.Host = append(p.Host, HostMetric{Name: name, Value: s.perSecond(value - s.first[name])})
	}
	for name, one := range s.states {
		highest := one.highest
		p.Host = append(p.Host, HostMetric{Name: name, Value: one.sum / float64(one.samples), Highest: &highest})
	}
	slices.SortFunc(p.Host, func(a, b HostMetric) int {
		return cmp.Or(-cmp.Compare(scope(a.Name), scope(b.Name)), cmp.Compare(a.Name, b.Name))
	})
	return p
}

func scope(name string) string {
	before, _, _ := strings.Cut(name, ".")
	return before
}

func (s *span) perSecond(total float64) float64 {
	if s.seconds <= 0 {
		return 0
	}
	return total / s.seconds
}
