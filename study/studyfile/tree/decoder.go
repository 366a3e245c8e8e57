package tree

import (
	"cmp"
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// MaxExact is the largest whole number that every JSON reader keeps exactly.
const MaxExact = 1<<53 - 1

// Decoder collects what is wrong with a tree while values are read from it. Nothing
// stops it: what is faulty keeps its zero value.
type Decoder struct {
	Faults []problem.Field
	Places Places
	Of     string // what the file is, in messages; empty: a study
}

// Fault adds what is wrong with the node at the path.
func (d *Decoder) Fault(at string, n *Node, format string, args ...any) {
	d.Faults = append(d.Faults, problem.Field{Path: at, Message: fmt.Sprintf(format, args...), Value: n.shown(), Line: n.Line})
}

// Report adds faults whose paths are the domain's, in the file's words.
func (d *Decoder) Report(faults ...problem.Field) {
	for _, fault := range faults {
		d.Faults = append(d.Faults, d.Places.locate(fault))
	}
}

// Section is a mapping of the file, with the Decoder that reads it.
type Section struct {
	*Decoder
	Path string
	Node *Node
}

// Open opens a mapping and refuses the fields it should not have. The
// answer is false if the node is no mapping.
func (d *Decoder) Open(at string, n *Node, known ...string) (Section, bool) {
	s := Section{Decoder: d, Path: at, Node: n}
	d.Places.Put(at, at, n.Line)
	if n.Kind != Mapping {
		d.Wrong(at, n, "a mapping of "+strings.Join(known, ", "))
		return s, false
	}
	for _, e := range n.Entries {
		d.Places.Put(Join(at, e.Key), Join(at, e.Key), e.Value.Line)
		if slices.Contains(known, e.Key) {
			continue
		}
		message := "is not a field of " + d.named(at) + ": " + suggest(e.Key, known)
		d.Faults = append(d.Faults, problem.Field{Path: Join(at, e.Key), Message: message, Line: e.Line})
	}
	return s, true
}

// Part opens a field that is a mapping, as Open does. The answer is false if it is
// absent, too.
func (s Section) Part(name string, known ...string) (Section, bool) {
	n, at := s.Get(name)
	if n == nil {
		return Section{}, false
	}
	return s.Open(at, n, known...)
}

func (d *Decoder) named(path string) string {
	return cmp.Or(path, d.Of, "a study")
}

// Wrong says that the node is of the wrong kind.
func (d *Decoder) Wrong(at string, n *Node, wanted string) {
	switch n.Kind {
	case Null:
		d.Fault(at, n, "is empty: it must be %s", wanted)
	case Unclear:
		d.Fault(at, n, "must be %s; %q is read differently by different versions of YAML", wanted, Shorten(n.Raw))
	default:
		d.Fault(at, n, "must be %s, not %s", wanted, n.Is())
	}
}

// Get returns a field's node and path, nil if it is absent.
func (s Section) Get(name string) (*Node, string) {
	for _, e := range s.Node.Entries {
		if e.Key == name {
			return e.Value, Join(s.Path, name)
		}
	}
	return nil, Join(s.Path, name)
}

// Need is Get for a required field; hint says what to write.
func (s Section) Need(name, hint string) (*Node, string) {
	n, at := s.Get(name)
	if n == nil {
		s.Faults = append(s.Faults, problem.Field{Path: at, Message: "is missing: " + hint, Line: s.Node.Line})
	}
	return n, at
}

// Text reads an optional text of at most the given number of bytes.
func (s Section) Text(name string, most int, target *string) {
	if n, at := s.Get(name); n != nil {
		s.TextOf(at, n, most, target)
	}
}

// TextOf reads the node as text of at most the given number of bytes.
func (d *Decoder) TextOf(at string, n *Node, most int, target *string) {
	switch {
	case n.Kind != Text && n.Kind != Boolean && n.Kind != Number && n.Kind != Unclear:
		d.Wrong(at, n, "text")
	case n.Kind != Text:
		d.Fault(at, n, "must be text: put it in quotes")
	case len(n.Raw) > most:
		d.Fault(at, n, "has %d bytes: at most %d", len(n.Raw), most)
	default:
		*target = n.Raw
	}
}

// Written reads any scalar as the text it was written as: an argument or a
// variable of the environment is text, whatever it looks like.
func (d *Decoder) Written(at string, n *Node, most int) (string, bool) {
	switch {
	case n.Kind == Null || n.Kind == List || n.Kind == Mapping:
		d.Wrong(at, n, `text ("" for none)`)
	case len(n.Raw) > most:
		d.Fault(at, n, "has %d bytes: at most %d", len(n.Raw), most)
	default:
		return n.Raw, true
	}
	return "", false
}

// Flag reads an optional boolean.
func (s Section) Flag(name string, target *bool) {
	n, at := s.Get(name)
	switch {
	case n == nil:
	case n.Kind != Boolean:
		s.Wrong(at, n, "true or false")
	default:
		*target = strings.EqualFold(n.Raw, "true")
	}
}

// Whole reads an optional whole number within the bounds.
func (s Section) Whole(name string, low, high int, target *int) {
	if n, at := s.Get(name); n != nil {
		s.WholeOf(at, n, low, high, target)
	}
}

// WholeOf reads the node as a whole number within the bounds.
func (d *Decoder) WholeOf(at string, n *Node, low, high int, target *int) {
	wanted := fmt.Sprintf("a whole number between %d and %d", low, high)
	if n.Kind != Number {
		d.Wrong(at, n, wanted)
		return
	}
	f, err := strconv.ParseFloat(n.Raw, 64)
	if err != nil || f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		d.Fault(at, n, "must be %s", wanted)
		return
	}
	*target = int(f)
}

// Number reads an optional number within the bounds.
func (s Section) Number(name string, low, high float64, target *float64) {
	if n, at := s.Get(name); n != nil {
		s.NumberOf(at, n, low, high, target)
	}
}

// NumberOf reads the node as a number within the bounds, and reports whether it is one.
func (d *Decoder) NumberOf(at string, n *Node, low, high float64, target *float64) bool {
	wanted := "a number between " + decimal(low) + " and " + decimal(high)
	if low == -math.MaxFloat64 {
		wanted = "a number"
	}
	if n.Kind != Number {
		d.Wrong(at, n, wanted)
		return false
	}
	f, err := strconv.ParseFloat(n.Raw, 64)
	switch {
	case err != nil || f < low || f > high:
		d.Fault(at, n, "must be %s", wanted)
	case !fraction(n.Raw) && math.Abs(f) > MaxExact:
		d.Fault(at, n, "is beyond the whole numbers that every reader keeps exactly, up to %d: write it with an exponent, such as 1e16", MaxExact)
	default:
		*target = f + 0 // -0 is 0
		return true
	}
	return false
}

// decimal writes a bound without an exponent.
func decimal(f float64) string { return strconv.FormatFloat(f, 'f', -1, 64) }

// fraction reports whether a number is written with a point or an exponent.
func fraction(raw string) bool { return strings.ContainsAny(raw, ".eE") }

// Elements returns the elements of a list, or the node itself if it is not one; none of nil.
func Elements(at string, n *Node) (items []*Node, paths []string) {
	switch {
	case n == nil:
		return nil, nil
	case n.Kind != List:
		return []*Node{n}, []string{at}
	}
	for i := range n.Items {
		paths = append(paths, Index(at, i))
	}
	return n.Items, paths
}

// Plain is the node as Go's values of JSON; where each part of it stands is noted.
func (d *Decoder) Plain(at string, n *Node) any {
	d.Places.Put(at, at, n.Line)
	switch n.Kind {
	case Null:
		return nil
	case Unclear:
		d.Fault(at, n, "is read differently by different versions of YAML: write a decimal number, such as 1500000000 or 1.5e9, or text in quotes")
	case Boolean:
		return strings.EqualFold(n.Raw, "true")
	case Number:
		if f, err := strconv.ParseFloat(n.Raw, 64); err == nil {
			return f
		}
	case List:
		list := []any{}
		for i, item := range n.Items {
			list = append(list, d.Plain(Index(at, i), item))
		}
		return list
	case Mapping:
		fields := map[string]any{}
		for _, e := range n.Entries {
			fields[e.Key] = d.Plain(Join(at, e.Key), e.Value)
		}
		return fields
	}
	return n.Raw
}
