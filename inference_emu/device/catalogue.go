package device

import (
	"cmp"
	"embed"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/problem"
)

//go:embed devices/*.yaml
var files embed.FS

// Catalogue returns the devices that the program knows, by name. An error is a
// defect of the program.
func Catalogue() ([]Device, error) {
	entries, err := files.ReadDir("devices")
	if err != nil {
		return nil, err
	}
	var devices []Device
	for _, entry := range entries {
		data, err := files.ReadFile("devices/" + entry.Name())
		if err != nil {
			return nil, err
		}
		d, err := Read(data)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", entry.Name(), err)
		}
		if entry.Name() != d.Name+".yaml" {
			return nil, problem.New(problem.Internal, "%s describes the device %s: name the file after it", entry.Name(), d.Name)
		}
		devices = append(devices, d)
	}
	slices.SortFunc(devices, byName)
	return devices, nil
}

func byName(a, b Device) int { return cmp.Compare(a.Name, b.Name) }

// Add returns the devices with those of a user, by name. A user's device takes
// the place of one of the same name.
func Add(devices []Device, own ...Device) []Device {
	all := slices.Clone(devices)
	for _, d := range own {
		all = slices.DeleteFunc(all, func(other Device) bool { return other.Name == d.Name })
		all = append(all, d)
	}
	slices.SortFunc(all, byName)
	return all
}

// Find returns the device of the name. The error is [problem.NotFound] and says
// which names are near, or all.
func Find(devices []Device, name string) (Device, error) {
	var known, near []string
	for _, d := range devices {
		if d.Name == name {
			return d, nil
		}
		known = append(known, d.Name)
		if isNear(strings.ToLower(name), d.Name) {
			near = append(near, d.Name)
		}
	}
	if len(near) > 0 {
		return Device{}, problem.New(problem.NotFound, "there is no device %q: did you mean %s?", shorten(name), strings.Join(near, " or "))
	}
	return Device{}, problem.New(problem.NotFound, "there is no device %q: known are %s",
		shorten(name), strings.Join(known, ", "))
}

// isNear reports whether somebody who wrote a name probably means the known one:
// one is a part of the other, or a few letters differ, in all of it or in its
// beginning.
func isNear(name, known string) bool {
	if len(name) >= 3 && (strings.Contains(known, name) || strings.Contains(name, known)) {
		return true
	}
	most := 1 + len(name)/8
	if len(name) < 3 || len(name) > maxNameBytes {
		return false
	}
	return problem.Typos(name, known) <= most || problem.Typos(name, known[:min(len(name), len(known))]) <= most
}
