package definition

import "slices"

// maxEarlier bounds the earlier studies that a study begins with.
const maxEarlier = 16

// warmStart reads which earlier studies this one begins with. What a server
// found in them is its own to write: it is taken and not kept, so that a study
// as shown can be sent again.
func (d *decoder) warmStart(s section) *WarmStart {
	n, at := s.get("warm_start")
	if n == nil {
		return nil
	}
	s, ok := d.section(at, n, "studies", "similar", "sources")
	if !ok {
		return nil
	}
	if shown, shownAt := s.get("sources"); shown != nil && shown.kind != list {
		d.wrong(shownAt, shown, "left out: the server writes it")
	}
	warm := &WarmStart{}
	s.whole("similar", 0, maxEarlier, &warm.Similar)
	studies, at := s.get("studies")
	if studies == nil {
		if warm.Similar == 0 {
			return nil
		}
		return warm
	}
	if studies.kind != list || len(studies.items) == 0 {
		d.wrong(at, studies, "a list of studies, by name or id, such as [first-sweep]")
		return nil
	}
	if len(studies.items) > maxEarlier {
		d.fault(at, studies, "has %d studies: at most %d", len(studies.items), maxEarlier)
		return nil
	}
	for i, item := range studies.items {
		name, before := "", len(d.faults)
		d.textOf(index(at, i), item, maxKey, &name)
		switch {
		case len(d.faults) > before:
		case name == "":
			d.fault(index(at, i), item, "must be the name or the id of a study")
		case slices.Contains(warm.Studies, name):
			d.fault(index(at, i), item, "is named twice")
		}
		warm.Studies = append(warm.Studies, name)
	}
	return warm
}
