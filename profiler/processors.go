package profiler

import (
	"cmp"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/profiler/proc"
)

// processor is a family of server processors by what the kernel says of it.
type processor struct {
	name          string
	vendor        string // vendor_id
	family        int
	models        []int
	first, last   int     // steppings; last 0: all from the first
	minimum, most float64 // watts of a logical core at rest, and at full load
}

// processors are the families in SPECpower_ssj2008's results: the mean watts at the wall of
// whole servers, memory and fans included, by logical core (Cloud Carbon Footprint,
// ccf-coefficients of March 2026, Apache-2.0). Left out are Graviton, whose values there are
// those of another processor, and EPYC 9005, whose are three times those of its neighbours.
func processors() []processor {
	const intel, amd = "GenuineIntel", "AuthenticAMD"
	return []processor{
		{"Intel Sandy Bridge", intel, 6, []int{45}, 0, 0, 2.21, 8.63},
		{"Intel Ivy Bridge", intel, 6, []int{62}, 0, 0, 1.71, 5.56},
		{"Intel Haswell", intel, 6, []int{63}, 0, 0, 1.86, 5.60},
		{"Intel Broadwell", intel, 6, []int{79, 86}, 0, 0, 0.71, 3.69},
		{"Intel Skylake", intel, 6, []int{85}, 0, 4, 0.61, 4.10},
		{"Intel Cascade Lake", intel, 6, []int{85}, 5, 7, 0.69, 4.06},
		{"Intel Coffee Lake", intel, 6, []int{158}, 10, 0, 1.14, 5.42},
		{"Intel Ice Lake", intel, 6, []int{106, 108}, 0, 0, 0.77, 3.76},
		{"Intel Sapphire Rapids", intel, 6, []int{143}, 0, 0, 1.04, 4.16},
		{"Intel Emerald Rapids", intel, 6, []int{207}, 0, 0, 0.81, 4.48},
		{"Intel Granite Rapids", intel, 6, []int{173, 174}, 0, 0, 0.58, 2.53},
		{"AMD EPYC 7001", amd, 23, []int{1}, 0, 0, 0.85, 2.60},
		{"AMD EPYC 7002", amd, 23, []int{49}, 0, 0, 0.47, 1.69},
		{"AMD EPYC 7003", amd, 25, []int{1}, 0, 0, 0.46, 1.96},
		{"AMD EPYC 9004", amd, 25, []int{17, 160}, 0, 0, 0.74, 2.28},
	}
}

// processorOf is the family of the host's processor; false for one that is not known, and
// for AMD's that are no EPYC, which share its numbers.
func processorOf(h proc.Host) (processor, bool) {
	info := proc.CPUInfo(h)
	number := func(name string) int {
		n, err := strconv.Atoi(info[name])
		if err != nil {
			return -1
		}
		return n
	}
	family, model, stepping := number("cpu family"), number("model"), number("stepping")
	for _, p := range processors() {
		if p.vendor == info["vendor_id"] && p.family == family && slices.Contains(p.models, model) && stepping >= p.first && stepping <= cmp.Or(p.last, stepping) {
			return p, strings.HasPrefix(p.name, "Intel") || strings.Contains(info["model name"], "EPYC")
		}
	}
	return processor{}, false
}

// AssumedWatts are those of a busy core, and of one at rest, that estimates assume of the
// machine whose kernel's files are below root, and where they come from; empty: they are
// round numbers.
func AssumedWatts(root string) (busy, rest float64, origin string) {
	known, found := processorOf(proc.NewHost(root))
	if !found {
		return DefaultWattsPerCore, DefaultIdleWattsPerCore, ""
	}
	return known.most - known.minimum, known.minimum, "as servers with " + known.name + " take on average"
}
