// Package query is the language in which people choose trials and put them in order:
//
//	state = failed and (lr > 0.01 or "weight decay" is null) order by loss desc limit 20
//
// A query is read once, against the fields that rows have, and then asked of each
// row. Its length, depth and values are bounded, and so is what a row costs. The
// package is pure, and knows rows only by their fields.
//
// A row may have nothing in a field, and a number may be NaN. No comparison holds
// then but !=, which is the opposite of =. "not" turns every answer around. In an
// order NaN stands behind all values, and nothing behind NaN, whatever the direction.
package query

import (
	"cmp"
	"math"
	"slices"
)

// Bounds of a query.
const (
	MaxLength = 2000 // in bytes
	maxDepth  = 50   // of parentheses and "not"
	maxValues = 200  // that rows are compared with, and sorted by
)

// Value is what a row has in a field: a number, a text, or nothing, which is the
// zero value.
type Value struct {
	standing standing
	number   float64
	text     string
}

// standing says which values compare: whatever the direction of an order, those
// with a lower one come last.
type standing uint8

const (
	nothing standing = iota
	diverged
	numeric
	textual
)

// Number is a number, which may be NaN.
func Number(number float64) Value {
	if math.IsNaN(number) {
		return Value{standing: diverged}
	}
	return Value{standing: numeric, number: number}
}

// NumberIf is a number where there is one, and nothing elsewhere.
func NumberIf(has bool, number float64) Value {
	if !has {
		return Value{}
	}
	return Number(number)
}

// Text is a text; an empty one is nothing.
func Text(text string) Value {
	if text == "" {
		return Value{}
	}
	return Value{standing: textual, text: text}
}

// equal holds for no two values that are NaN or nothing.
func (v Value) equal(other Value) bool { return v.standing >= numeric && v == other }

// compare orders values that are neither NaN nor nothing: numbers before texts.
func (v Value) compare(other Value) int {
	return cmp.Or(cmp.Compare(v.standing, other.standing), cmp.Compare(v.number, other.number), cmp.Compare(v.text, other.text))
}

// Field is something that rows have. Its values are of one row at a time.
type Field[R any] struct {
	Of func(R) Value
	// List is for a field with several texts, each of which compares; Of has them all.
	List func(R) []string
	// Texts says that it has no numbers, Seconds that spans such as 10m are
	// numbers of it.
	Texts, Seconds bool
	// Choices, if any, are all values that it may have.
	Choices []string
}

// Key is a field that rows are sorted by.
type Key[R any] struct {
	Of         func(R) Value
	Descending bool
}

// Query is a query that was read. The zero value takes all rows as they are. It is
// safe for concurrent use.
type Query[R any] struct {
	keeps func(R) bool // nil: all
	keys  []Key[R]
	limit int // 0: none
}

// Apply returns the rows that the query asks for, in its order; equal ones keep
// theirs. It changes the slice that it is given.
func (q Query[R]) Apply(rows []R) []R {
	if q.keeps != nil {
		rows = slices.DeleteFunc(rows, func(row R) bool { return !q.keeps(row) })
	}
	Sort(rows, q.keys...)
	if q.limit > 0 && q.limit < len(rows) {
		rows = rows[:q.limit]
	}
	return rows
}

// Sort orders rows by the first key, equal ones by the next. Those that are equal
// in all keep their order.
func Sort[R any](rows []R, keys ...Key[R]) {
	type keyed struct {
		row    R
		values []Value
	}
	list, values := make([]keyed, len(rows)), make([]Value, 0, len(rows)*len(keys))
	for i, row := range rows {
		for _, key := range keys {
			values = append(values, key.Of(row))
		}
		list[i] = keyed{row, values[i*len(keys):]}
	}
	slices.SortStableFunc(list, func(a, b keyed) int {
		for i, key := range keys {
			x, y := a.values[i], b.values[i]
			order := x.compare(y)
			if x.standing < numeric || y.standing < numeric {
				order = cmp.Compare(min(y.standing, numeric), min(x.standing, numeric))
			} else if key.Descending {
				order = -order
			}
			if order != 0 {
				return order
			}
		}
		return 0
	})
	for i := range list {
		rows[i] = list[i].row
	}
}
