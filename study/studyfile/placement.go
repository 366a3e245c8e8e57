package studyfile

import (
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readPlacement reads the section.
func readPlacement(s tree.Section) definition.Placement {
	var result definition.Placement
	n, at := s.Get("placement")
	if n == nil {
		return result
	}
	if s, ok := s.Open(at, n, "energy"); ok {
		s.Number("energy", 0, 1, &result.Energy)
	}
	return result
}
