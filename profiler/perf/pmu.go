package perf

import (
	"fmt"
	"github.com/tandem-tune/tandem/profiler/proc"
	"path/filepath"
	"slices"
	"strconv"
	"strings"
)

// perProcess are the drivers whose events can be counted for a process, by the
// beginning of their names in sysfs. Others (memory controllers, energy) count
// for a whole package or machine, whoever caused it.
var perProcess = [...]string{"cpu", "msr", "armv8_", "armv9_"}

// pmuEvents are the events that the processor's drivers name in sysfs. Those
// that ask for an argument, or are spelled in a way not known here, are left
// out: nothing says what they would count.
func pmuEvents(h proc.Host) []Event {
	var list []Event
	for _, file := range h.Glob("sys/bus/event_source/devices/*/type") {
		folder, err := filepath.Rel(h.Root, filepath.Dir(file))
		if err != nil {
			continue
		}
		name := filepath.Base(folder)
		ours := func(prefix string) bool { return strings.HasPrefix(name, prefix) }
		text, err := h.Text(filepath.Join(folder, "type"))
		if err != nil || !slices.ContainsFunc(perProcess[:], ours) {
			continue
		}
		source, err := strconv.ParseUint(text, 10, 32)
		if err != nil {
			continue
		}
		list = append(list, driverEvents(h, folder, name, uint32(source))...)
	}
	return list
}

func driverEvents(h proc.Host, folder, driver string, source uint32) []Event {
	formats := map[string]string{}
	for _, file := range h.Glob(filepath.Join(folder, "format", "*")) {
		name := filepath.Base(file)
		if text, err := h.Text(filepath.Join(folder, "format", name)); err == nil {
			formats[name] = text
		}
	}
	var list []Event
	for _, file := range h.Glob(filepath.Join(folder, "events", "*")) {
		name := filepath.Base(file)
		if strings.HasSuffix(name, ".scale") || strings.HasSuffix(name, ".unit") || strings.HasSuffix(name, ".snapshot") {
			continue
		}
		text, err := h.Text(filepath.Join(folder, "events", name))
		if err != nil {
			continue
		}
		configs, err := parseEvent(text, formats)
		if err != nil || known(name) {
			continue // the kernel's common names are counted already
		}
		list = append(list, Event{Name: driver + "/" + name, Kind: PMU, source: source, config: configs[0], config1: configs[1], config2: configs[2]})
	}
	return list
}

// known reports whether a driver's name is another of an event with a common one.
func known(name string) bool {
	return slices.ContainsFunc(knownEvents(), func(e Event) bool { return e.Name == name })
}

// parseEvent places the terms of an event such as "event=0xcd,umask=0x1" where
// the formats ("config:0-7") say that their bits are.
func parseEvent(text string, formats map[string]string) (configs [3]uint64, err error) {
	for term := range strings.SplitSeq(text, ",") {
		name, digits, given := strings.Cut(strings.TrimSpace(term), "=")
		value := uint64(1)
		if given {
			if value, err = strconv.ParseUint(digits, 0, 64); err != nil {
				return configs, fmt.Errorf("the term %q has no number", term)
			}
		}
		number, bits := 0, ""
		switch field, ranges, found := strings.Cut(formats[name], ":"); {
		case name == "config" || name == "config1" || name == "config2":
			field, ranges = name, "0-63"
			fallthrough
		case found:
			if number, err = configNumber(field); err != nil {
				return configs, err
			}
			bits = ranges
		default:
			return configs, fmt.Errorf("the term %q has no format", name)
		}
		placed, err := place(value, bits)
		if err != nil {
			return configs, err
		}
		configs[number] |= placed
	}
	return configs, nil
}

func configNumber(field string) (int, error) {
	number := slices.Index([]string{"config", "config1", "config2"}, field)
	if number < 0 {
		return 0, fmt.Errorf("no field %q in an event", field)
	}
	return number, nil
}

// place spreads a value's bits over ranges such as "0-7,32-35", lowest first.
func place(value uint64, ranges string) (uint64, error) {
	bits, err := proc.ParseCPUList(ranges) // the same notation
	if err != nil {
		return 0, err
	}
	var placed uint64
	for i, bit := range bits {
		if bit > 63 || i > 63 {
			return 0, fmt.Errorf("no bit %d in an event", bit)
		}
		placed |= value >> i & 1 << bit
	}
	if len(bits) < 64 && value>>len(bits) != 0 {
		return 0, fmt.Errorf("%#x does not fit into %s", value, ranges)
	}
	return placed, nil
}
