package space

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// Active returns the names of the parameters that exist in the configuration,
// in the space's order: those without conditions, and those whose conditions
// all hold. It reads only the values of active parameters.
func (s Space) Active(c Configuration) []string {
	active := make(map[string]bool, len(s.Parameters))
	var names []string
	for _, p := range s.Parameters {
		if holdAll(p.When, c, active) {
			active[p.Name] = true
			names = append(names, p.Name)
		}
	}
	return names
}

// holdAll reports whether every condition holds among the active parameters.
func holdAll(conditions []Condition, c Configuration, active map[string]bool) bool {
	for _, condition := range conditions {
		v, present := c[condition.Parameter]
		if !active[condition.Parameter] || !present || !condition.allows(v) {
			return false
		}
	}
	return true
}

func (c Condition) allows(v Value) bool {
	return slices.ContainsFunc(c.In, func(allowed Value) bool { return same(allowed, v) })
}

// Check returns everything that is wrong with the configuration: it must hold
// exactly the active parameters, each with a value of its own type, in range
// and on its step, and no forbidden combination. The paths start with
// "params.". The space must be valid.
func (s Space) Check(c Configuration) []problem.Field {
	canonical, faults := s.read(c)
	for _, p := range s.Parameters {
		given, present := c[p.Name]
		if wanted, ok := canonical[p.Name]; ok && present && wanted != given {
			text, _ := json.Marshal(wanted)
			faults = append(faults, problem.Field{
				Path:    "params." + p.Name,
				Message: fmt.Sprintf("must be written as %s, in the parameter's own type", text),
				Value:   given.String(),
			})
		}
	}
	return faults
}

// read returns the values that fit in canonical form, and what does not fit.
func (s Space) read(c Configuration) (Configuration, []problem.Field) {
	var faults []problem.Field
	fault := func(name, message string) {
		field := problem.Field{Path: "params." + name, Message: message}
		if v, ok := c[name]; ok {
			field.Value = v.String()
		}
		faults = append(faults, field)
	}
	canonical := make(Configuration, len(c))
	active := make(map[string]bool, len(s.Parameters))
	for _, p := range s.Parameters {
		v, present := c[p.Name]
		if !holdAll(p.When, c, active) {
			if present {
				fault(p.Name, "must be absent: its conditions do not hold")
			}
			continue
		}
		active[p.Name] = true
		if !present {
			fault(p.Name, "is missing")
			continue
		}
		accepted, wrong := p.accept(v)
		if wrong != "" {
			fault(p.Name, wrong)
			continue
		}
		canonical[p.Name] = accepted
	}
	for _, name := range s.unknown(c) {
		fault(name, s.stranger(name))
	}
	for i, forbidden := range s.Forbidden {
		if holdAll(forbidden, c, active) {
			faults = append(faults, problem.Field{
				Path:    "params",
				Message: fmt.Sprintf("is forbidden by combination %d: %s", i+1, forbidden),
			})
		}
	}
	return canonical, faults
}

// stranger says that no parameter has the name, and which was probably meant.
func (s Space) stranger(name string) string {
	known := make([]string, len(s.Parameters))
	for i, p := range s.Parameters {
		known[i] = p.Name
	}
	said := "is not a parameter of the search space"
	if meant := problem.Meant(name, known); meant != "" {
		said += ": did you mean " + meant + "?"
	}
	return said
}

// unknown returns the configuration's names that the space lacks, sorted.
func (s Space) unknown(c Configuration) []string {
	known := make(map[string]bool, len(s.Parameters))
	for _, p := range s.Parameters {
		known[p.Name] = true
	}
	var names []string
	for name := range c {
		if !known[name] {
			names = append(names, name)
		}
	}
	slices.Sort(names)
	return names
}

// String is the combination as a person would say it.
func (f Forbidden) String() string {
	parts := make([]string, len(f))
	for i, c := range f {
		parts[i] = fmt.Sprintf("%s in (%s)", c.Parameter, list(c.In))
	}
	return strings.Join(parts, " and ")
}

// Key is a text that equal configurations share and different ones do not,
// provided that both are canonical.
func (c Configuration) Key() string { return string(c.appendJSON(nil)) }

// MarshalJSON writes an object with its names sorted, as [Configuration.Key]
// does; a configuration that is nil is null.
func (c Configuration) MarshalJSON() ([]byte, error) {
	if c == nil {
		return []byte("null"), nil
	}
	for name, v := range c {
		if !v.finite() {
			return nil, fmt.Errorf("parameter %s cannot be %v", name, v)
		}
	}
	return c.appendJSON(nil), nil
}

func (c Configuration) appendJSON(text []byte) []byte {
	var few [32]string // most spaces are small: their names need no allocation
	names := few[:0]
	size := 2
	for name := range c {
		names = append(names, name)
		size += len(name) + 26
	}
	slices.Sort(names)
	if text == nil {
		text = make([]byte, 0, size)
	}
	text = append(text, '{')
	for i, name := range names {
		if i > 0 {
			text = append(text, ',')
		}
		text = append(appendText(text, name), ':')
		text = c[name].appendJSON(text)
	}
	return append(text, '}')
}
