package definition

import (
	"bytes"
	"encoding/json"
	"strings"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// The words of the section. Automatic is written for a knob, or for the whole
// section, whose values the server chooses; Off for a section that tunes nothing.
const (
	Automatic = "auto"
	Off       = "off"
)

// System is the system section: with what trials run.
type System struct {
	// Word is Automatic or Off where the section is that one word, and nothing else is
	// set then; else empty. A command's study without the section is Automatic, but
	// studies that were stored without it are Off.
	Word string
	// Constants hold for every trial, such as {"cpu_threads": 1}.
	Constants system.Configuration
	// Tuning are the knobs that the section lists to be tuned; nil for none. What is
	// tuned indeed says [Definition.Tuning].
	Tuning *system.Settings
}

// IsZero reports whether the section says nothing.
func (s System) IsZero() bool { return s.Word == "" && len(s.Constants) == 0 && s.Tuning == nil }

// MarshalJSON writes the section as a file has it.
func (s System) MarshalJSON() ([]byte, error) {
	if s.Word != "" {
		return json.Marshal(s.Word)
	}
	fields := map[string]any{}
	for name, value := range s.Constants {
		fields[name] = value
	}
	if s.Tuning != nil {
		fields["objective"] = s.Tuning.Objective
		for _, knob := range s.Tuning.Tuned {
			fields[knob.Name] = any(Automatic)
			if len(knob.Values) > 0 {
				fields[knob.Name] = map[string]any{"values": knob.Values}
			}
		}
	}
	return json.Marshal(fields)
}

// UnmarshalJSON reads what MarshalJSON writes; it was checked when it was parsed.
func (s *System) UnmarshalJSON(data []byte) error {
	if bytes.HasPrefix(data, []byte(`"`)) {
		*s = System{}
		return json.Unmarshal(data, &s.Word)
	}
	var fields map[string]json.RawMessage
	if err := json.Unmarshal(data, &fields); err != nil {
		return err
	}
	*s = System{}
	for _, name := range system.Names() {
		content, given := fields[name]
		if !given {
			continue
		}
		if err := s.read(name, content); err != nil {
			return err
		}
	}
	if s.Tuning != nil {
		return json.Unmarshal(fields["objective"], &s.Tuning.Objective)
	}
	return nil
}

func (s *System) read(name string, content json.RawMessage) error {
	var tuned struct {
		Values []space.Value `json:"values"`
	}
	if strings.HasPrefix(string(content), "{") {
		if err := json.Unmarshal(content, &tuned); err != nil {
			return err
		}
		s.Tune(system.Tuned{Name: name, Values: tuned.Values})
		return nil
	}
	var value space.Value
	if err := json.Unmarshal(content, &value); err != nil {
		return err
	}
	if word, _ := value.Text(); word == Automatic {
		s.Tune(system.Tuned{Name: name})
		return nil
	}
	s.Fix(name, value)
	return nil
}

// Tune adds a knob that is tuned.
func (s *System) Tune(knob system.Tuned) {
	if s.Tuning == nil {
		s.Tuning = &system.Settings{Objective: system.Seconds}
	}
	s.Tuning.Tuned = append(s.Tuning.Tuned, knob)
}

// Fix gives a knob the value that it has in every trial.
func (s *System) Fix(name string, value space.Value) {
	if s.Constants == nil {
		s.Constants = system.Configuration{}
	}
	s.Constants[name] = value
}
