package definition

import (
	"encoding/json"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/system"
)

// automatic is written for a knob, or for the whole section, whose values the
// server chooses.
const automatic = "auto"

// maxKnobValues bounds the values of one knob.
const maxKnobValues = 64

// System is the system section: with what trials run.
type System struct {
	// Constants hold for every trial, such as {"cpu_threads": 1}.
	Constants system.Configuration
	// Tuning is what is tuned while trials run; nil for nothing.
	Tuning *system.Settings
}

// IsZero reports whether the section says nothing.
func (s System) IsZero() bool { return len(s.Constants) == 0 && s.Tuning == nil }

// MarshalJSON writes the section as a file has it.
func (s System) MarshalJSON() ([]byte, error) {
	fields := map[string]any{}
	for name, value := range s.Constants {
		fields[name] = value
	}
	if s.Tuning != nil {
		fields["objective"] = s.Tuning.Objective
		for _, knob := range s.Tuning.Tuned {
			fields[knob.Name] = any(automatic)
			if len(knob.Values) > 0 {
				fields[knob.Name] = map[string]any{"values": knob.Values}
			}
		}
	}
	return json.Marshal(fields)
}

// UnmarshalJSON reads what MarshalJSON writes; it was checked when it was parsed.
func (s *System) UnmarshalJSON(data []byte) error {
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
		s.tune(system.Tuned{Name: name, Values: tuned.Values})
		return nil
	}
	var value space.Value
	if err := json.Unmarshal(content, &value); err != nil {
		return err
	}
	if word, _ := value.Text(); word == automatic {
		s.tune(system.Tuned{Name: name})
		return nil
	}
	s.fix(name, value)
	return nil
}

func (s *System) tune(knob system.Tuned) {
	if s.Tuning == nil {
		s.Tuning = &system.Settings{Objective: system.Seconds}
	}
	s.Tuning.Tuned = append(s.Tuning.Tuned, knob)
}

func (s *System) fix(name string, value space.Value) {
	if s.Constants == nil {
		s.Constants = system.Configuration{}
	}
	s.Constants[name] = value
}

// system reads the section: for each knob a constant, the values to try, or
// "auto"; or "auto" for all of it, which tunes the threads.
func (d *decoder) system(s section) System {
	var result System
	n, at := s.get("system")
	if n == nil {
		return result
	}
	if n.kind == text && n.raw == automatic {
		result.tune(system.Tuned{Name: system.CPUThreads})
		return result
	}
	if n.kind != mapping {
		d.wrong(at, n, `"auto", or a mapping of knobs such as cpu_threads`)
		return result
	}
	known, ok := d.section(at, n, append([]string{"objective"}, system.Names()...)...)
	if !ok {
		return result
	}
	for _, knob := range system.Catalogue() {
		if given, knobAt := known.get(knob.Name); given != nil {
			d.knob(&result, knob, knobAt, given)
		}
	}
	d.systemObjective(known, &result)
	if result.Tuning != nil {
		d.checkGrid(at, n, *result.Tuning)
	}
	return result
}

// knob reads one field of the section.
func (d *decoder) knob(result *System, knob system.Knob, at string, n *node) {
	switch {
	case n.kind == list:
		d.fault(at, n, "must be one value, or a mapping with those to try: write {values: [...]}")
	case n.kind == mapping:
		s, ok := d.section(at, n, "values")
		if !ok {
			return
		}
		values, valuesAt := s.need("values", "those to try, such as {values: [1, 2, 4]}")
		if values == nil {
			return
		}
		if values.kind != list || len(values.items) == 0 || len(values.items) > maxKnobValues {
			d.fault(valuesAt, values, "must be a list of 1 to %d values", maxKnobValues)
			return
		}
		if chosen, ok := d.knobValues(knob, valuesAt, values); ok {
			result.tune(system.Tuned{Name: knob.Name, Values: chosen})
		}
	case n.kind == text && n.raw == automatic:
		if knob.Name != system.CPUThreads && knob.Name != system.Cores {
			d.fault(at, n, "cannot be auto: which values make sense depends on the machine, so list them: {values: [...]}")
			return
		}
		result.tune(system.Tuned{Name: knob.Name})
	default:
		if value, ok := d.knobValue(knob, at, n); ok {
			result.fix(knob.Name, value)
		}
	}
}

func (d *decoder) knobValues(knob system.Knob, at string, n *node) ([]space.Value, bool) {
	before := len(d.faults)
	var chosen []space.Value
	for i, item := range n.items {
		value, ok := d.knobValue(knob, index(at, i), item)
		if ok && slices.Contains(chosen, value) {
			d.fault(index(at, i), item, "is there already")
		}
		chosen = append(chosen, value)
	}
	return chosen, len(d.faults) == before
}

// knobValue reads one value of a knob.
func (d *decoder) knobValue(knob system.Knob, at string, n *node) (space.Value, bool) {
	before := len(d.faults)
	switch knob.Kind {
	case system.Whole:
		count := 0
		d.wholeOf(at, n, int(knob.Low), int(knob.High), &count)
		return space.Int(int64(count)), len(d.faults) == before
	case system.Number:
		amount := 0.0
		ok := d.numberOf(at, n, knob.Low, knob.High, &amount)
		if whole := int64(amount); ok && float64(whole) == amount {
			return space.Int(whole), true
		}
		return space.Float(amount), ok
	default:
		word := ""
		if n.kind != text || !plainWord(n.raw) {
			d.wrong(at, n, "a word of at most 64 letters, digits, - and _")
			return space.Value{}, false
		}
		d.textOf(at, n, maxText, &word)
		return space.String(word), len(d.faults) == before
	}
}

// plainWord reports whether the text can stand in a file of the kernel's.
func plainWord(s string) bool {
	return s != "" && len(s) <= 64 && s != automatic && strings.Trim(s, "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789-_") == ""
}

func (d *decoder) systemObjective(s section, result *System) {
	n, at := s.get("objective")
	if n == nil {
		return
	}
	var objective string
	d.textOf(at, n, maxKey, &objective)
	switch {
	case !slices.Contains([]system.Objective{system.Seconds, system.Joules, system.Cost}, system.Objective(objective)):
		d.fault(at, n, "must be seconds, joules or cost")
	case result.Tuning == nil:
		d.fault(at, n, "is for knobs that are tuned: give one the values to try, such as cpu_threads: {values: [1, 2, 4]}, or leave it out")
	default:
		result.Tuning.Objective = system.Objective(objective)
	}
}

// checkGrid refuses more configurations than can be told apart.
func (d *decoder) checkGrid(at string, n *node, settings system.Settings) {
	const autos = 8 // powers of two on 128 cores
	configurations := 1
	for _, knob := range settings.Tuned {
		count := len(knob.Values)
		if count == 0 {
			count = autos
		}
		configurations *= count
	}
	if configurations > system.MaxConfigurations {
		d.faults = append(d.faults, problem.Field{Path: at, Line: n.line,
			Message: "has more than 256 configurations: tune fewer knobs, or fewer values of each"})
	}
}
