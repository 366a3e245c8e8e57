package knob

import (
	"fmt"
	"log/slog"
	"maps"
	"sync"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// Settings is the system configuration of a run: what is wanted, and what is
// really in force. Wanted may be called at any time; the caller calls the other
// methods one at a time.
type Settings struct {
	controls *Controls
	note     func(level slog.Level, what string)

	mutex  sync.Mutex
	wanted system.Configuration

	// started is what the script was told when it was started, without what is
	// not the script's to apply.
	started system.Configuration
	applied system.Configuration
	// noted are the sentences on it that were noted.
	noted map[string]bool
}

// Wanted is the system configuration that the lease wants, with the GPUs that
// the server gave the trial.
func Wanted(lease protocol.Lease) system.Configuration {
	wanted := system.Configuration(lease.System)
	if lease.GPUCount != nil {
		wanted = wanted.With(system.Configuration{system.GPUs: space.Int(int64(*lease.GPUCount))})
	}
	return wanted
}

// NewSettings calls note with what is applied how, and what is not, once each.
func NewSettings(controls *Controls, wanted system.Configuration, note func(level slog.Level, what string)) *Settings {
	s := &Settings{controls: controls, note: note, wanted: maps.Clone(wanted), started: system.Configuration{}, applied: system.Configuration{}, noted: map[string]bool{}}
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

// Wanted is the configuration the server wants now.
func (s *Settings) Wanted() system.Configuration {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	return s.wanted
}

// Want replaces the wanted configuration.
func (s *Settings) Want(wanted system.Configuration) {
	s.mutex.Lock()
	defer s.mutex.Unlock()
	s.wanted = maps.Clone(wanted)
}

// Apply makes the wanted configuration come true, as far as that is the agent's
// task. What cannot be applied is not in force, and is noted once.
func (s *Settings) Apply(on *Subject) {
	wanted := s.Wanted()
	for _, about := range system.Catalogue() {
		if about.Applier != system.Agent || !about.Live && on.Command != nil {
			continue
		}
		value, has := wanted[about.Name]
		k := s.controls.knobs[about.Name]
		if !has {
			k.unset(on)
			delete(s.applied, about.Name)
			continue
		}
		how, err := k.set(on, value)
		if err != nil {
			k.unset(on)
			delete(s.applied, about.Name)
			s.noteOnce(slog.LevelWarn, fmt.Sprintf("system: %s is not applied: %v", about.Name, err))
			continue
		}
		s.applied[about.Name] = value
		if how != "" {
			s.noteOnce(slog.LevelInfo, fmt.Sprintf("system: %s is applied by %s", about.Name, how))
		}
	}
}

func (s *Settings) noteOnce(level slog.Level, what string) {
	if !s.noted[what] {
		s.noted[what] = true
		s.note(level, what)
	}
}

// Fixed is what was applied and holds as long as the command.
func (s *Settings) Fixed() system.Configuration {
	fixed := system.Configuration{}
	for _, about := range system.Catalogue() {
		if value, has := s.applied[about.Name]; has && !about.Live {
			fixed[about.Name] = value
		}
	}
	return fixed
}

// Inherit takes what was applied to the command before the run came to it.
func (s *Settings) Inherit(fixed system.Configuration) { maps.Copy(s.applied, fixed) }

// InForce is the configuration of the epoch just ended: what was applied and
// stayed in force, and what the script says of the rest, else what it was started
// with.
func (s *Settings) InForce(on *Subject, said map[string]space.Value) map[string]space.Value {
	kept := maps.Clone(s.applied)
	for name := range s.applied {
		if !s.controls.knobs[name].held(on) {
			delete(kept, name)
		}
	}
	all := s.started.With(kept)
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
