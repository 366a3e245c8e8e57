package inference

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

// readClocks reads a list of clocks in MHz, or that clocks are not set.
func readClocks(s tree.Section, result *definition.Inference) {
	n, at := s.Get("clocks")
	if n == nil {
		return
	}
	if n.Kind == tree.Mapping {
		pinned, before := true, len(s.Faults)
		if known, ok := s.Open(at, n, "pinned"); ok {
			known.Flag("pinned", &pinned)
		}
		if pinned && len(s.Faults) == before {
			s.Fault(at, n, "must be a list of MHz, such as [600, 1500], or {pinned: false}, which leaves clocks as they are")
		}
		result.Unpinned = !pinned
		return
	}
	items, paths := tree.Elements(at, n)
	if len(items) == 0 || len(items) > mostClocks {
		s.Fault(at, n, "must have 1 to %d clocks in MHz, or be {pinned: false}", mostClocks)
		return
	}
	before := len(s.Faults)
	for i, item := range items {
		var clock float64
		s.NumberOf(paths[i], item, 1, mostMHz, &clock)
		result.Clocks = append(result.Clocks, clock)
	}
	if len(s.Faults) == before {
		checkClocks(s, at, n, result)
	}
}

// checkClocks looks for a clock that each device has, where its clocks are known.
func checkClocks(s tree.Section, at string, n *tree.Node, result *definition.Inference) {
	catalogue, err := device.Catalogue()
	if err != nil {
		return // the devices say so
	}
	settings := deployment.Settings{}
	for _, clock := range result.Clocks {
		settings.ClocksHertz = append(settings.ClocksHertz, clock*1e6)
	}
	for _, one := range device.Add(slices.Clone(catalogue), result.Own()...) {
		if !slices.Contains(result.Names(), one.Name) || len(one.Clusters) == 0 || one.Clusters[0].StepsHertz == nil || len(settings.Clocks(one)) > 0 {
			continue
		}
		var has []string
		for _, hertz := range one.Clusters[0].StepsHertz.Value {
			has = append(has, fmt.Sprintf("%.6g", hertz/1e6))
		}
		s.Fault(at, n, "has no clock of %s: name one of %s", one.Name, strings.Join(has, ", "))
	}
}
