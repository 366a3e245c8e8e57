package space

import (
	"fmt"
	"math"
	"slices"
	"strings"
)

// same reports whether two values mean the same: 1 and 1.0 do, 1 and "1" do not.
func same(a, b Value) bool {
	if a == b {
		return true
	}
	x, isNumber := a.Number()
	y, alsoNumber := b.Number()
	return isNumber && alsoNumber && x == y
}

// index returns the place of the value among the parameter's values, or -1.
func (p Parameter) index(v Value) int {
	return slices.IndexFunc(p.Values, func(choice Value) bool { return same(choice, v) })
}

// Fixed is the only value that a parameter without conditions can have, if it has but one.
func (p Parameter) Fixed() (value Value, fixed bool) {
	switch {
	case len(p.When) > 0:
	case p.discrete() && len(p.Values) == 1:
		return p.Values[0], true
	case !p.discrete() && p.Low == p.High:
		return Float(p.Low), true
	}
	return Value{}, false
}

// discrete reports whether the parameter has listed values.
func (p Parameter) discrete() bool {
	return p.Type == CategoricalType || p.Type == OrdinalType
}

// accept returns the value in the parameter's own type, or what is wrong with
// it: an int becomes a float, an integral float an int, a value next to a step
// the step, and a choice is written as the space lists it.
func (p Parameter) accept(v Value) (accepted Value, wrong string) {
	if p.discrete() {
		if i := p.index(v); i >= 0 {
			return p.Values[i], ""
		}
		return v, "must be one of " + list(p.Values)
	}
	number, ok := v.Number()
	switch {
	case !ok:
		return v, fmt.Sprintf("must be a number, as the parameter is %s", article(p.Type))
	case math.IsNaN(number) || math.IsInf(number, 0):
		return v, "must be a finite number"
	case p.Type == IntType && number != math.Trunc(number):
		return v, "must be a whole number, as the parameter is an int"
	case number < p.Low || number > p.High:
		return v, fmt.Sprintf("must be between %s and %s", number64(p.Low), number64(p.High))
	}
	s := newScale(p)
	if s.count == 0 {
		return Float(number + 0), ""
	}
	if !s.onLattice(number) {
		return v, fmt.Sprintf("must be %s plus a multiple of the step %s", number64(s.low), number64(s.step))
	}
	return s.value(s.at(s.nearest(number)) + 0), ""
}

func article(t Type) string {
	if t == IntType {
		return "an int"
	}
	return "a float"
}

func number64(v float64) string { return Float(v).String() }

// list shows values in a message; a long list is cut.
func list(values []Value) string {
	const shown = 12
	var parts []string
	for i, v := range values {
		if i == shown {
			parts = append(parts, fmt.Sprintf("... (%d in all)", len(values)))
			break
		}
		parts = append(parts, v.String())
	}
	return strings.Join(parts, ", ")
}
