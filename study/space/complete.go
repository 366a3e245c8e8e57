package space

import (
	"fmt"
	"math"
	"math/rand/v2"
	"strconv"

	"github.com/tandem-tune/tandem/internal/problem"
)

// CheckPart returns everything that is wrong with a configuration of which
// parts may be missing: names the space does not have, and values outside
// their parameter's domain. Parameters whose conditions do not hold are no
// fault. The paths start with "params.".
func (s Space) CheckPart(c Configuration) []problem.Field {
	_, faults := s.accepted(c)
	return faults
}

// Part returns what the space can take of a configuration of which parts may
// be missing: its values in their parameter's own type, without those whose
// conditions do not hold among them. The error is [problem.Invalid].
func (s Space) Part(c Configuration) (Configuration, error) {
	known, faults := s.accepted(c)
	if len(faults) > 0 {
		return nil, problem.WithFields("the parameters do not fit the search space", faults)
	}
	part := make(Configuration, len(known))
	for _, name := range s.Active(known) {
		if v, given := known[name]; given {
			part[name] = v
		}
	}
	return part, nil
}

// accepted returns the values that fit, in their parameter's own type.
func (s Space) accepted(c Configuration) (Configuration, []problem.Field) {
	var faults []problem.Field
	known := make(Configuration, len(c))
	for _, p := range s.Parameters {
		v, present := c[p.Name]
		if !present {
			continue
		}
		accepted, wrong := p.accept(v)
		if wrong != "" {
			faults = append(faults, problem.Field{Path: "params." + p.Name, Message: wrong, Value: v.String()})
			continue
		}
		known[p.Name] = accepted
	}
	for _, name := range s.unknown(c) {
		faults = append(faults, problem.Field{Path: "params." + name, Message: s.stranger(name), Value: c[name].String()})
	}
	return known, faults
}

// Complete returns the configuration with its missing parameters drawn
// uniformly. Given parameters whose conditions do not hold are left out. A
// configuration that lacks nothing draws nothing. The error is
// [problem.Invalid]: it names every fault, or the forbidden combination that
// the given values make, or says that no draw of the others was allowed.
func (c *Cube) Complete(given Configuration, r *rand.Rand) (Configuration, error) {
	known, faults := c.space.accepted(given)
	if len(faults) > 0 {
		return nil, problem.WithFields("the parameters do not fit the search space", faults)
	}
	for range maxDraws {
		complete, drawn := c.fill(known, r)
		faults := c.space.Check(complete)
		if len(faults) == 0 {
			return complete, nil
		}
		if !drawn {
			return nil, problem.WithFields("the parameters do not fit the search space", faults)
		}
	}
	return nil, problem.WithFields("the parameters do not fit the search space", []problem.Field{{Path: "params",
		Message: fmt.Sprintf("cannot be completed: %d random draws of the missing parameters in a row made a forbidden combination", maxDraws)}})
}

// fill goes through the parameters in their order, so that the conditions of
// each are decided before it. drawn says that a value was not given.
func (c *Cube) fill(known Configuration, r *rand.Rand) (complete Configuration, drawn bool) {
	complete = make(Configuration, len(c.dimensions))
	for i, p := range c.space.Parameters {
		exists := true
		for _, condition := range p.When {
			v, present := complete[condition.Parameter]
			exists = exists && present && condition.allows(v)
		}
		if !exists {
			continue
		}
		v, given := known[p.Name]
		if !given {
			v, drawn = c.value(i, r.Float64()), true
		}
		complete[p.Name] = v
	}
	return complete, drawn
}

// Written returns the value that a person means who writes the text for the
// parameter: a choice as the space lists it, a number, true or false, or else
// the text itself. Whether it fits is for [Space.Check] to say.
func (p Parameter) Written(text string) Value {
	for _, choice := range p.Values {
		if choice.String() == text {
			return choice
		}
	}
	if i, err := strconv.ParseInt(text, 10, 64); err == nil {
		return Int(i)
	}
	if f, err := strconv.ParseFloat(text, 64); err == nil && !math.IsNaN(f) && !math.IsInf(f, 0) {
		return Float(f)
	}
	switch text {
	case "true", "True", "TRUE":
		return Bool(true)
	case "false", "False", "FALSE":
		return Bool(false)
	}
	return String(text)
}
