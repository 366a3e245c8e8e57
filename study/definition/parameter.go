package definition

import (
	"math"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/study/space"
)

// maxText bounds a text among a parameter's values: it goes with every trial.
const maxText = 1024

// space reads the parameters and the combinations that are forbidden.
//
// A user writes the parameters as a mapping by name, and the combinations
// beside the space. A server shows both in the space, the parameters as a list
// under "parameters".
func (d *decoder) space(s section) space.Space {
	var result space.Space
	n, at := s.need("space", "name at least one parameter, such as learning_rate: {type: float, low: 1e-4, high: 0.1, log: true}")
	forbidden, forbiddenAt := s.get("forbidden")
	if n == nil || n.kind != mapping {
		if n != nil {
			d.wrong(at, n, "a mapping of names and parameters")
		}
		d.places.spoil("space")
	} else if inner := (section{decoder: d, path: at, node: n}); inner.isListed() {
		result.Parameters = d.listed(inner)
		if inside, insideAt := inner.get("forbidden"); inside != nil && forbidden != nil {
			d.fault(insideAt, inside, "is given twice, here and beside the space: keep one of the two")
		} else if inside != nil {
			forbidden, forbiddenAt = inside, insideAt
		}
	} else {
		for _, e := range n.entries {
			result.Parameters = append(result.Parameters, d.parameter(join(at, e.key), e.key, e.value, false))
		}
	}
	if n != nil {
		d.places.put("space", at, n.line)
	}
	if forbidden != nil {
		result.Forbidden = d.forbidden(forbiddenAt, forbidden)
	}
	return result
}

// isListed reports whether a space is written as a server shows it.
func (s section) isListed() bool {
	n, _ := s.get("parameters")
	return n != nil && n.kind == list
}

func (d *decoder) listed(s section) []space.Parameter {
	_, _ = d.section(s.path, s.node, "parameters", "forbidden")
	n, at := s.get("parameters")
	var parameters []space.Parameter
	for i, item := range n.items {
		var name string
		if item.kind == mapping {
			inner := section{decoder: d, path: index(at, i), node: item}
			if given, givenAt := inner.need("name", "every parameter has one"); given != nil {
				d.textOf(givenAt, given, maxKey, &name)
			}
		}
		path := join(s.path, name)
		if name == "" {
			path = index(at, i)
		}
		parameters = append(parameters, d.parameter(path, name, item, true))
	}
	return parameters
}

// parameter reads one parameter; at is its path in the file. In a list it has
// its name inside, and the bounds of one with values are shown as 0.
func (d *decoder) parameter(at, name string, n *node, listed bool) space.Parameter {
	p := space.Parameter{Name: name, Kind: space.Training}
	domain := join("space", name)
	d.places.put(domain, at, n.line)
	before := len(d.faults)
	defer func() {
		if len(d.faults) > before {
			d.places.spoil(domain)
		}
	}()
	if n.kind == list {
		d.fault(at, n, "must be a mapping: write {values: [...]} for a choice among these")
		return p
	}
	known := []string{"kind", "type", "low", "high", "log", "step", "values", "when", "group"}
	if listed {
		known = append(known, "name")
	}
	s, ok := d.section(at, n, known...)
	if !ok {
		return p
	}
	s.text("kind", maxKey, (*string)(&p.Kind))
	if group, groupAt := s.get("group"); group != nil {
		d.textOf(groupAt, group, maxKey, &p.Group)
		if group.kind == text && p.Group == "" {
			d.fault(groupAt, group, "must be one of search.groups, or be left out")
		}
	}
	d.domain(s, &p, listed)
	if when, whenAt := s.get("when"); when != nil {
		p.When = d.conditions(domain+".when", whenAt, when)
	}
	return p
}

// domain reads a parameter's type and its bounds or values.
func (d *decoder) domain(s section, p *space.Parameter, listed bool) {
	values, valuesAt := s.get("values")
	s.text("type", maxKey, (*string)(&p.Type))
	if n, _ := s.get("type"); n == nil {
		if values == nil {
			s.need("type", "float or int for a range from low to high, categorical or ordinal for values")
			return
		}
		p.Type = space.CategoricalType
	}
	if p.Type == space.CategoricalType || p.Type == space.OrdinalType {
		s.choice(p, listed)
		return
	}
	if values != nil {
		d.fault(valuesAt, values, "belongs to a categorical or an ordinal: a float or an int has low and high")
		return
	}
	unbounded := math.MaxFloat64
	if low, at := s.need("low", "the smallest value"); low != nil {
		d.numberOf(at, low, -unbounded, unbounded, &p.Low)
	}
	if high, at := s.need("high", "the largest value"); high != nil {
		d.numberOf(at, high, -unbounded, unbounded, &p.High)
	}
	s.flag("log", &p.Log)
	if step, at := s.get("step"); step != nil && d.numberOf(at, step, -unbounded, unbounded, &p.Step) && p.Step <= 0 {
		d.fault(at, step, "must be greater than 0, or be left out")
	}
}

// choice reads the values of a categorical or an ordinal.
func (s section) choice(p *space.Parameter, listed bool) {
	for _, name := range []string{"low", "high", "log", "step"} {
		n, at := s.get(name)
		if n != nil && !(listed && n.kind == number && n.raw == "0") {
			s.fault(at, n, "belongs to a float or an int: a parameter with values has no %s", name)
		}
	}
	n, at := s.need("values", "the choices, such as [32, 64, 128]")
	if n == nil {
		return
	}
	if n.kind != list {
		s.wrong(at, n, "a list of values, such as [32, 64, 128]")
		return
	}
	p.Values = s.values(at, n)
	for i, item := range n.items {
		s.places.put(index(join("space", p.Name)+".values", i), index(at, i), item.line)
	}
}

// values reads a list of values, or one.
func (d *decoder) values(at string, n *node) []space.Value {
	items, paths := elements(at, n)
	var values []space.Value
	for i, item := range items {
		if v, ok := d.value(paths[i], item); ok {
			values = append(values, v)
		}
	}
	return values
}

// value reads a number, a text or a boolean as what it was written as: 1 is an
// int and 1.0 a float.
func (d *decoder) value(at string, n *node) (space.Value, bool) {
	switch n.kind {
	case boolean:
		return space.Bool(strings.EqualFold(n.raw, "true")), true
	case text:
		if len(n.raw) > maxText {
			d.fault(at, n, "has %d bytes: at most %d", len(n.raw), maxText)
			return space.Value{}, false
		}
		return space.String(n.raw), true
	case number:
		if i, err := strconv.ParseInt(n.raw, 10, 64); err == nil && -maxExact <= i && i <= maxExact {
			return space.Int(i), true
		}
		var f float64
		ok := d.numberOf(at, n, -math.MaxFloat64, math.MaxFloat64, &f)
		return space.Float(f), ok
	case unclear:
		d.fault(at, n, "is read differently by different versions of YAML: write true, false or a decimal number, or put it in quotes")
	default:
		d.wrong(at, n, "a number, a text, true or false")
	}
	return space.Value{}, false
}
