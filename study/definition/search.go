package definition

import (
	"maps"
	"slices"
	"strings"
)

// grid is the one method that ends by itself.
const grid = "grid"

// Methods is what the study is searched with, for people: "bohb", or "bohb, with
// system: random" where a group has another method.
func (s Search) Methods() string {
	if len(s.Groups) == 0 {
		return s.Method
	}
	var groups []string
	for _, name := range slices.Sorted(maps.Keys(s.Groups)) {
		groups = append(groups, name+": "+s.Groups[name].Method)
	}
	return s.Method + ", with " + strings.Join(groups, ", ")
}

// Has reports whether some parameters may be searched with the method.
func (s Search) Has(method string) bool {
	for _, group := range s.Groups {
		if group.Method == method {
			return true
		}
	}
	return s.Method == method
}

// Ends reports whether the search ends by itself: all of it is a grid.
func (s Search) Ends() bool {
	for _, group := range s.Groups {
		if group.Method != grid {
			return false
		}
	}
	return s.Method == grid
}

// MaxTrials is the most trials that a study may be bounded by: such a bound is no
// plan, and means that the study goes on until somebody ends it.
const MaxTrials = 1_000_000
