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
