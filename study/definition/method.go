package definition

import (
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/search"
)

// The methods that the file treats in a way of their own.
const (
	grid  = "grid"
	cmaes = "cma-es"
)

// method reads the name of a method.
func (d *decoder) method(s section, target *string) {
	before := len(d.faults)
	s.text("method", maxKey, target)
	if n, at := s.get("method"); n != nil && len(d.faults) == before && !slices.Contains(search.Names(), *target) {
		hint := ""
		if strings.EqualFold(*target, "hyperband") {
			hint = "; Hyperband is method: random with promotion: synchronous"
		}
		d.fault(at, n, "must be one of %s%s", strings.Join(search.Names(), ", "), hint)
	}
}

// groups reads the methods of groups of parameters.
func (d *decoder) groups(s section) map[string]search.Group {
	n, at := s.get("groups")
	if n == nil {
		return nil
	}
	if n.kind != mapping {
		d.wrong(at, n, "a mapping of groups or kinds of parameters and their methods, such as {system: {method: random}}")
		return nil
	}
	groups := make(map[string]search.Group, len(n.entries))
	for _, e := range n.entries {
		inner, ok := d.section(join(at, e.key), e.value, "method")
		if !ok {
			continue
		}
		var group search.Group
		inner.need("method", "one of "+strings.Join(search.Names(), ", "))
		d.method(inner, &group.Method)
		groups[e.key] = group
	}
	if len(groups) == 0 {
		return nil
	}
	return groups
}

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

// has reports whether some parameters may be searched with the method.
func (s Search) has(method string) bool {
	for _, group := range s.Groups {
		if group.Method == method {
			return true
		}
	}
	return s.Method == method
}

// ends reports whether the search ends by itself: all of it is a grid.
func (s Search) ends() bool {
	for _, group := range s.Groups {
		if group.Method != grid {
			return false
		}
	}
	return s.Method == grid
}
