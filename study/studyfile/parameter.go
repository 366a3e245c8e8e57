package studyfile

import (
	"math"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// maxText bounds a text among a parameter's values: it goes with every trial.
const maxText = 1024

// readSpace reads the parameters and the combinations that are forbidden.
//
// A user writes the parameters as a mapping by name, and the combinations
// beside the space. A server shows both in the space, the parameters as a list
// under "parameters".
func readSpace(s tree.Section) space.Space {
	var result space.Space
	n, at := s.Need("space", "name at least one parameter, such as learning_rate: {type: float, low: 1e-4, high: 0.1, log: true}")
	forbidden, forbiddenAt := s.Get("forbidden")
	if n == nil || n.Kind != tree.Mapping {
		if n != nil {
			s.Wrong(at, n, "a mapping of names and parameters")
		}
		s.Places.Spoil("space")
	} else if inner := (tree.Section{Decoder: s.Decoder, Path: at, Node: n}); isListed(inner) {
		result.Parameters = readListed(inner)
		if inside, insideAt := inner.Get("forbidden"); inside != nil && forbidden != nil {
			s.Fault(insideAt, inside, "is given twice, here and beside the space: keep one of the two")
		} else if inside != nil {
			forbidden, forbiddenAt = inside, insideAt
		}
	} else {
		for _, e := range n.Entries {
			result.Parameters = append(result.Parameters, readParameter(s.Decoder, tree.Join(at, e.Key), e.Key, e.Value, false))
		}
	}
	if n != nil {
		s.Places.Put("space", at, n.Line)
	}
	if forbidden != nil {
		result.Forbidden = readForbidden(s.Decoder, forbiddenAt, forbidden)
	}
	return result
}

// isListed reports whether a space is written as a server shows it.
func isListed(s tree.Section) bool {
	n, _ := s.Get("parameters")
	return n != nil && n.Kind == tree.List
}

func readListed(s tree.Section) []space.Parameter {
	_, _ = s.Open(s.Path, s.Node, "parameters", "forbidden")
	n, at := s.Get("parameters")
	var parameters []space.Parameter
	for i, item := range n.Items {
		var name string
		if item.Kind == tree.Mapping {
			inner := tree.Section{Decoder: s.Decoder, Path: tree.Index(at, i), Node: item}
			if given, givenAt := inner.Need("name", "every parameter has one"); given != nil {
				s.TextOf(givenAt, given, tree.MaxKey, &name)
			}
		}
		path := tree.Join(s.Path, name)
		if name == "" {
			path = tree.Index(at, i)
		}
		parameters = append(parameters, readParameter(s.Decoder, path, name, item, true))
	}
	return parameters
}

// readParameter reads one parameter; at is its path in the file. In a list it has
// its name inside, and the bounds of one with values are shown as 0.
func readParameter(d *tree.Decoder, at, name string, n *tree.Node, listed bool) space.Parameter {
	p := space.Parameter{Name: name, Kind: space.Training}
	domain := tree.Join("space", name)
	d.Places.Put(domain, at, n.Line)
	before := len(d.Faults)
	defer func() {
		if len(d.Faults) > before {
			d.Places.Spoil(domain)
		}
	}()
	if n.Kind == tree.List {
		d.Fault(at, n, "must be a mapping: write {values: [...]} for a choice among these")
		return p
	}
	known := []string{"kind", "type", "low", "high", "log", "step", "values", "when", "expect"}
	if listed {
		known = append(known, "name")
	}
	s, ok := d.Open(at, n, known...)
	if !ok {
		return p
	}
	s.Text("kind", tree.MaxKey, (*string)(&p.Kind))
	readDomain(s, &p, listed)
	p.Expect = readExpectation(s)
	if when, whenAt := s.Get("when"); when != nil {
		p.When = readConditions(d, domain+".when", whenAt, when)
	}
	return p
}

// readExpectation reads where the best value is expected. Whether it fits is for the space
// to say.
func readExpectation(s tree.Section) *space.Expectation {
	s, ok := s.Part("expect", "value", "sure")
	if !ok {
		return nil
	}
	result := &space.Expectation{Sure: space.Medium}
	if value, valueAt := s.Need("value", "where the best value is expected"); value != nil {
		result.Value, _ = readValue(s.Decoder, valueAt, value)
	}
	s.Text("sure", tree.MaxKey, (*string)(&result.Sure))
	return result
}

// readDomain reads a parameter's type and its bounds or values.
func readDomain(s tree.Section, p *space.Parameter, listed bool) {
	values, valuesAt := s.Get("values")
	s.Text("type", tree.MaxKey, (*string)(&p.Type))
	if n, _ := s.Get("type"); n == nil {
		if values == nil {
			s.Need("type", "float or int for a range from low to high, categorical or ordinal for values")
			return
		}
		p.Type = space.CategoricalType
	}
	if p.Type == space.CategoricalType || p.Type == space.OrdinalType {
		readChoice(s, p, listed)
		return
	}
	if values != nil {
		s.Fault(valuesAt, values, "belongs to a categorical or an ordinal: a float or an int has low and high")
		return
	}
	unbounded := math.MaxFloat64
	if low, at := s.Need("low", "the smallest value"); low != nil {
		s.NumberOf(at, low, -unbounded, unbounded, &p.Low)
	}
	if high, at := s.Need("high", "the largest value"); high != nil {
		s.NumberOf(at, high, -unbounded, unbounded, &p.High)
	}
	s.Flag("log", &p.Log)
	if step, at := s.Get("step"); step != nil && s.NumberOf(at, step, -unbounded, unbounded, &p.Step) && p.Step <= 0 {
		s.Fault(at, step, "must be greater than 0, or be left out")
	}
}

// readChoice reads the values of a categorical or an ordinal.
func readChoice(s tree.Section, p *space.Parameter, listed bool) {
	for _, name := range []string{"low", "high", "log", "step"} {
		n, at := s.Get(name)
		if n != nil && !(listed && n.Kind == tree.Number && n.Raw == "0") {
			s.Fault(at, n, "belongs to a float or an int: a parameter with values has no %s", name)
		}
	}
	n, at := s.Need("values", "the choices, such as [32, 64, 128]")
	if n == nil {
		return
	}
	if n.Kind != tree.List {
		s.Wrong(at, n, "a list of values, such as [32, 64, 128]")
		return
	}
	p.Values = readValues(s.Decoder, at, n)
	for i, item := range n.Items {
		s.Places.Put(tree.Index(tree.Join("space", p.Name)+".values", i), tree.Index(at, i), item.Line)
	}
}

// readValues reads a list of values, or one.
func readValues(d *tree.Decoder, at string, n *tree.Node) []space.Value {
	items, paths := tree.Elements(at, n)
	var values []space.Value
	for i, item := range items {
		if v, ok := readValue(d, paths[i], item); ok {
			values = append(values, v)
		}
	}
	return values
}

// readValue reads a number, a text or a boolean as what it was written as: 1 is an
// int and 1.0 a float.
func readValue(d *tree.Decoder, at string, n *tree.Node) (space.Value, bool) {
	switch n.Kind {
	case tree.Boolean:
		return space.Bool(strings.EqualFold(n.Raw, "true")), true
	case tree.Text:
		if len(n.Raw) > maxText {
			d.Fault(at, n, "has %d bytes: at most %d", len(n.Raw), maxText)
			return space.Value{}, false
		}
		return space.String(n.Raw), true
	case tree.Number:
		if i, err := strconv.ParseInt(n.Raw, 10, 64); err == nil && -tree.MaxExact <= i && i <= tree.MaxExact {
			return space.Int(i), true
		}
		var f float64
		ok := d.NumberOf(at, n, -math.MaxFloat64, math.MaxFloat64, &f)
		return space.Float(f), ok
	case tree.Unclear:
		d.Fault(at, n, "is read differently by different versions of YAML: write true, false or a decimal number, or put it in quotes")
	default:
		d.Wrong(at, n, "a number, a text, true or false")
	}
	return space.Value{}, false
}
