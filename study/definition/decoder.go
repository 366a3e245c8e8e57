package definition

import (
	"fmt"
	"math"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

// maxExact is the largest whole number that every JSON reader keeps exactly.
const maxExact = 1<<53 - 1

// decoder collects what is wrong with a tree while it turns it into a
// Definition. Nothing stops it: what is faulty keeps its zero value.
type decoder struct {
	faults []problem.Field
	places places
}

func (d *decoder) fault(at string, n *node, format string, args ...any) {
	d.faults = append(d.faults, problem.Field{Path: at, Message: fmt.Sprintf(format, args...), Value: n.shown(), Line: n.line})
}

// section is a mapping of the file that is being read.
type section struct {
	*decoder
	path string
	node *node
}

// section opens a mapping and refuses the fields it should not have. The
// answer is false if the node is no mapping.
func (d *decoder) section(at string, n *node, known ...string) (section, bool) {
	s := section{decoder: d, path: at, node: n}
	d.places.put(at, at, n.line)
	if n.kind != mapping {
		d.wrong(at, n, "a mapping of "+strings.Join(known, ", "))
		return s, false
	}
	for _, e := range n.entries {
		d.places.put(join(at, e.key), join(at, e.key), e.value.line)
		if slices.Contains(known, e.key) {
			continue
		}
		message := "is not a field of " + named(at) + ": " + suggest(e.key, known)
		d.faults = append(d.faults, problem.Field{Path: join(at, e.key), Message: message, Line: e.line})
	}
	return s, true
}

func named(path string) string {
	if path == "" {
		return "a study"
	}
	return path
}

// wrong says that the node is of the wrong kind.
func (d *decoder) wrong(at string, n *node, wanted string) {
	switch n.kind {
	case null:
		d.fault(at, n, "is empty: it must be %s", wanted)
	case unclear:
		d.fault(at, n, "must be %s; %q is read differently by different versions of YAML", wanted, shorten(n.raw))
	default:
		d.fault(at, n, "must be %s, not %s", wanted, n.is())
	}
}

// get returns a field's node and path, nil if it is absent.
func (s section) get(name string) (*node, string) {
	for _, e := range s.node.entries {
		if e.key == name {
			return e.value, join(s.path, name)
		}
	}
	return nil, join(s.path, name)
}

// need is get for a required field; hint says what to write.
func (s section) need(name, hint string) (*node, string) {
	n, at := s.get(name)
	if n == nil {
		s.faults = append(s.faults, problem.Field{Path: at, Message: "is missing: " + hint, Line: s.node.line})
	}
	return n, at
}

// text reads an optional text of at most the given number of bytes.
func (s section) text(name string, most int, target *string) {
	if n, at := s.get(name); n != nil {
		s.textOf(at, n, most, target)
	}
}

func (d *decoder) textOf(at string, n *node, most int, target *string) {
	switch {
	case n.kind != text && n.kind != boolean && n.kind != number && n.kind != unclear:
		d.wrong(at, n, "text")
	case n.kind != text:
		d.fault(at, n, "must be text: put it in quotes")
	case len(n.raw) > most:
		d.fault(at, n, "has %d bytes: at most %d", len(n.raw), most)
	default:
		*target = n.raw
	}
}

// written reads any scalar as the text it was written as: an argument or a
// variable of the environment is text, whatever it looks like.
func (d *decoder) written(at string, n *node, most int) (string, bool) {
	switch {
	case n.kind == null || n.kind == list || n.kind == mapping:
		d.wrong(at, n, `text ("" for none)`)
	case len(n.raw) > most:
		d.fault(at, n, "has %d bytes: at most %d", len(n.raw), most)
	default:
		return n.raw, true
	}
	return "", false
}

// flag reads an optional boolean.
func (s section) flag(name string, target *bool) {
	n, at := s.get(name)
	switch {
	case n == nil:
	case n.kind != boolean:
		s.wrong(at, n, "true or false")
	default:
		*target = strings.EqualFold(n.raw, "true")
	}
}

// whole reads an optional whole number within the bounds.
func (s section) whole(name string, low, high int, target *int) {
	if n, at := s.get(name); n != nil {
		s.wholeOf(at, n, low, high, target)
	}
}

func (d *decoder) wholeOf(at string, n *node, low, high int, target *int) {
	wanted := fmt.Sprintf("a whole number between %d and %d", low, high)
	if n.kind != number {
		d.wrong(at, n, wanted)
		return
	}
	f, err := strconv.ParseFloat(n.raw, 64)
	if err != nil || f != math.Trunc(f) || f < float64(low) || f > float64(high) {
		d.fault(at, n, "must be %s", wanted)
		return
	}
	*target = int(f)
}

// number reads an optional number within the bounds.
func (s section) number(name string, low, high float64, target *float64) {
	if n, at := s.get(name); n != nil {
		s.numberOf(at, n, low, high, target)
	}
}

func (d *decoder) numberOf(at string, n *node, low, high float64, target *float64) bool {
	wanted := "a number between " + decimal(low) + " and " + decimal(high)
	if low == -math.MaxFloat64 {
		wanted = "a number"
	}
	if n.kind != number {
		d.wrong(at, n, wanted)
		return false
	}
	f, err := strconv.ParseFloat(n.raw, 64)
	switch {
	case err != nil || f < low || f > high:
		d.fault(at, n, "must be %s", wanted)
	case !fraction(n.raw) && math.Abs(f) > maxExact:
		d.fault(at, n, "is beyond the whole numbers that every reader keeps exactly, up to %d: write it with an exponent, such as 1e16", maxExact)
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

// elements returns the elements of a list, or the node itself if it is not one.
func elements(at string, n *node) (items []*node, paths []string) {
	if n.kind != list {
		return []*node{n}, []string{at}
	}
	for i := range n.items {
		paths = append(paths, index(at, i))
	}
	return n.items, paths
}
