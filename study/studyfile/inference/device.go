package inference

import (
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
)

func readDevices(s tree.Section) (list []definition.InferenceDevice) {
	const wanted = `where the model will run, such as [raspberry-pi-4]: "tandem edge devices" lists the names`
	n, at := s.Need("devices", wanted)
	if n == nil {
		return nil
	}
	items, paths := tree.Elements(at, n)
	if len(items) == 0 || len(items) > maxDevices {
		s.Fault(at, n, "must name 1 to %d devices", maxDevices)
		return nil
	}
	catalogue, err := device.Catalogue()
	if err != nil {
		s.Fault(at, n, "cannot be checked: %v", err)
		return nil
	}
	for i, item := range items {
		one := definition.InferenceDevice{}
		before := len(s.Faults)
		if item.Kind == tree.Mapping {
			one = readOwn(s.Decoder, paths[i], item, catalogue)
		} else {
			s.TextOf(paths[i], item, tree.MaxKey, &one.Name)
		}
		if len(s.Faults) > before {
			continue
		}
		if own, board := strings.CutPrefix(one.Name, device.BoardPrefix); board {
			if !device.IsName(own) {
				s.Fault(paths[i], item, "must have small letters, digits and single hyphens after %s, as the board's --device has", device.BoardPrefix)
			}
		} else if _, err := device.Find(catalogue, one.Name); err != nil && one.Own == nil && one.Name != device.ThisMachine {
			s.Fault(paths[i], item, "%s; tandem edge agent makes a board of yours one, %sNAME, or describe it here as examples/edge-device/my-board.yaml does", message(err), device.BoardPrefix)
		} else if slices.ContainsFunc(list, func(other definition.InferenceDevice) bool { return other.Name == one.Name }) {
			s.Fault(paths[i], item, "is there already: %s", one.Name)
		}
		list = append(list, one)
	}
	return list
}

// readOwn reads a device that is described in place. What boards measure counts for the
// names that others have: it must have one of its own.
func readOwn(d *tree.Decoder, at string, n *tree.Node, catalogue []device.Device) definition.InferenceDevice {
	own := device.From(d, at, n)
	if own.Name == device.ThisMachine || slices.ContainsFunc(catalogue, func(other device.Device) bool { return other.Name == own.Name }) {
		d.Report(problem.Field{Path: at + ".name", Value: own.Name, Message: "is a name that Tandem knows: give yours another, such as my-" + own.Name})
	}
	return definition.InferenceDevice{Name: own.Name, Own: &own}
}
