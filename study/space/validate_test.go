package space_test

import (
	"math"
	"strings"
	"testing"

	"pgregory.net/rapid"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

func TestValidateNamesEveryFault(t *testing.T) {
	float := func(change func(*space.Parameter)) space.Space {
		p := space.Parameter{Name: "x", Kind: space.Training, Type: space.FloatType, Low: 1, High: 2}
		change(&p)
		return space.Space{Parameters: []space.Parameter{p}}
	}
	with := func(change func(*space.Space)) space.Space {
		s := network()
		change(&s)
		return s
	}
	cases := []struct {
		name  string
		space space.Space
		paths string // of all faults, in order
		says  string // a part of the first message
	}{
		{"a good space", network(), "", ""},
		{"no parameter", space.Space{}, "space", "at least one"},
		{"low above high", float(func(p *space.Parameter) { p.Low = 3 }), "space.x.low", "less than high"},
		{"low equal to high", float(func(p *space.Parameter) { p.Low = 2 }), "space.x.low", "categorical with that value"},
		{"NaN", float(func(p *space.Parameter) { p.Low = math.NaN() }), "space.x.low", "finite"},
		{"infinite range", float(func(p *space.Parameter) { p.Low, p.High = -1e308, 1e308 }), "space.x.high", "finite"},
		{"log from 0", float(func(p *space.Parameter) { p.Low, p.Log = 0, true }), "space.x.low", "greater than 0"},
		{"negative step", float(func(p *space.Parameter) { p.Step = -1 }), "space.x.step", "positive"},
		{"step beyond the range", float(func(p *space.Parameter) { p.Step = 1.5 }), "space.x.step", "range"},
		{"too many steps", float(func(p *space.Parameter) { p.Step = 1e-15 }), "space.x.high", "larger step"},
		{"int with a fraction", float(func(p *space.Parameter) { p.Type, p.Low, p.Step = space.IntType, 0.5, 0.5 }), "space.x.low space.x.step", "whole"},
		{"int beyond float64", float(func(p *space.Parameter) { p.Type, p.High = space.IntType, 1e17 }), "space.x.high", "2^53"},
		{"float with values", float(func(p *space.Parameter) { p.Values = texts("a") }), "space.x.values", "categorical"},
		{"unknown type and kind", float(func(p *space.Parameter) { p.Type, p.Kind = "real", "" }), "space.x.kind space.x.type", "model, training"},
		{"a name with a blank", float(func(p *space.Parameter) { p.Name = "a b" }), "space.a b", "letter"},
		{"a name from a digit", float(func(p *space.Parameter) { p.Name = "1a" }), "space.1a", "letter"},
		{"a long name", float(func(p *space.Parameter) { p.Name = strings.Repeat("a", 129) }), "space." + strings.Repeat("a", 129), "128"},
		{"a name twice", with(func(s *space.Space) { s.Parameters[4].Name = "lr" }), "space.lr", "twice"},
		{"choices with bounds", float(func(p *space.Parameter) { p.Type, p.Log, p.Step = space.OrdinalType, true, 1 }),
			"space.x.low space.x.log space.x.step space.x.values", "float or an int"},
		{"a choice twice", with(func(s *space.Space) { s.Parameters[3].Values[2] = space.Float(32) }),
			"space.batch.values[2]", "same as values[0]"},
		{"an ordinal of two types", with(func(s *space.Space) { s.Parameters[3].Values[1] = space.String("64") }), "space.batch.values[1]", "a number like the first"},
		{"an unset choice", with(func(s *space.Space) { s.Parameters[1].Values[1] = space.Value{} }),
			"space.optimizer.values[1]", "must be a number, a string or a boolean"},
		{"a later condition", with(func(s *space.Space) { s.Parameters[0].When = s.Parameters[2].When }), "space.lr.when[0].parameter", "earlier"},
		{"its own condition", with(func(s *space.Space) { s.Parameters[1].When = s.Parameters[2].When }), "space.optimizer.when[0].parameter", "another"},
		{"an unknown condition", with(func(s *space.Space) { s.Parameters[2].When[0].Parameter = "opt" }), "space.momentum.when[0].parameter", "not a parameter"},
		{"an impossible condition", with(func(s *space.Space) { s.Parameters[2].When[0].In = texts("sgd", "lamb") }), "space.momentum.when[0].in[1]", "one of sgd, adam"},
		{"an empty condition", with(func(s *space.Space) { s.Parameters[2].When[0].In = nil }), "space.momentum.when[0].in", "at least one"},
		{"an empty combination", with(func(s *space.Space) { s.Forbidden[0] = nil }), "space.forbidden[0]", "empty"},
		{"an impossible combination", with(func(s *space.Space) { s.Forbidden[0][1].In[0] = space.Int(100) }), "space.forbidden[0][1].in[0]", "can never be"},
		{"everything is forbidden", with(func(s *space.Space) {
			s.Forbidden = append(s.Forbidden, space.Forbidden{{Parameter: "optimizer", In: texts("sgd", "adam")}})
		}), "space.forbidden", "almost nothing"},
	}
	for _, c := range cases {
		t.Run(c.name, func(t *testing.T) {
			faults := c.space.Validate("space")
			if got := paths(faults); got != c.paths {
				t.Fatalf("faults at %q, want %q:\n%v", got, c.paths, faults)
			}
			if len(faults) > 0 && !strings.Contains(faults[0].Message, c.says) {
				t.Errorf("the message %q should say %q", faults[0].Message, c.says)
			}
		})
	}
}

func paths(faults []problem.Field) string {
	var all []string
	for _, f := range faults {
		all = append(all, f.Path)
	}
	return strings.Join(all, " ")
}

func TestValidateBoundsTheSpace(t *testing.T) {
	many := space.Space{Parameters: make([]space.Parameter, space.MaxParameters+1)}
	if got := paths(many.Validate("space")); got != "space" {
		t.Errorf("too many parameters: faults at %q", got)
	}
	p := training(space.Parameter{Name: "x", Type: space.CategoricalType})
	for i := range space.MaxValues + 1 {
		p.Values = append(p.Values, space.Int(int64(i)))
	}
	if got := paths(space.Space{Parameters: []space.Parameter{p}}.Validate("s")); got != "s.x.values" {
		t.Errorf("too many values: faults at %q", got)
	}
}

func TestGeneratedSpacesAreValid(t *testing.T) {
	rapid.Check(t, func(t *rapid.T) {
		s := anySpace().Draw(t, "space")
		for _, f := range s.Validate("space") {
			// A combination on the first choice may forbid a one-sided space.
			if f.Path != "space.forbidden" {
				t.Fatal(f)
			}
		}
	})
}
