package studyfile

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readMethod reads the name of a method.
func readMethod(s tree.Section, target *string) {
	before := len(s.Faults)
	s.Text("method", tree.MaxKey, target)
	if n, at := s.Get("method"); n != nil && len(s.Faults) == before && !slices.Contains(search.Names(), *target) {
		hint := ""
		if strings.EqualFold(*target, "hyperband") {
			hint = "; Hyperband is method: random with promotion: synchronous"
		}
		s.Fault(at, n, "must be one of %s%s", strings.Join(search.Names(), ", "), hint)
	}
}

// readGroups reads the methods of groups of parameters.
func readGroups(s tree.Section) map[string]search.Group {
	n, at := s.Get("groups")
	if n == nil {
		return nil
	}
	if n.Kind != tree.Mapping {
		s.Wrong(at, n, "a mapping of groups or kinds of parameters and their methods, such as {system: {method: random}}")
		return nil
	}
	groups := make(map[string]search.Group, len(n.Entries))
	for _, e := range n.Entries {
		inner, ok := s.Open(tree.Join(at, e.Key), e.Value, "method")
		if !ok {
			continue
		}
		var group search.Group
		inner.Need("method", "one of "+strings.Join(search.Names(), ", "))
		readMethod(inner, &group.Method)
		groups[e.Key] = group
	}
	if len(groups) == 0 {
		return nil
	}
	return groups
}
