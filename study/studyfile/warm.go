package studyfile

import (
	"slices"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// maxEarlier bounds the earlier studies that a study begins with.
const maxEarlier = 16

// readWarmStart reads which earlier studies this one begins with. What a server
// found in them is its own to write: it is taken and not kept, so that a study
// as shown can be sent again.
func readWarmStart(s tree.Section) *definition.WarmStart {
	s, ok := s.Part("warm_start", "studies", "similar", "sources")
	if !ok {
		return nil
	}
	if shown, shownAt := s.Get("sources"); shown != nil && shown.Kind != tree.List {
		s.Wrong(shownAt, shown, "left out: the server writes it")
	}
	warm := &definition.WarmStart{}
	s.Whole("similar", 0, maxEarlier, &warm.Similar)
	studies, at := s.Get("studies")
	if studies == nil {
		if warm.Similar == 0 {
			return nil
		}
		return warm
	}
	if studies.Kind != tree.List || len(studies.Items) == 0 {
		s.Wrong(at, studies, "a list of studies, by name or id, such as [first-sweep]")
		return nil
	}
	if len(studies.Items) > maxEarlier {
		s.Fault(at, studies, "has %d studies: at most %d", len(studies.Items), maxEarlier)
		return nil
	}
	for i, item := range studies.Items {
		name, before := "", len(s.Faults)
		s.TextOf(tree.Index(at, i), item, tree.MaxKey, &name)
		switch {
		case len(s.Faults) > before:
		case name == "":
			s.Fault(tree.Index(at, i), item, "must be the name or the id of a study")
		case slices.Contains(warm.Studies, name):
			s.Fault(tree.Index(at, i), item, "is named twice")
		}
		warm.Studies = append(warm.Studies, name)
	}
	return warm
}
