package definition

import (
	"slices"

	"github.com/tandem-tune/tandem/study/system"
)

// Resources is what each trial of a study needs of one machine, and has for
// itself there: all of it at once, or the trial does not start.
type Resources struct {
	// GPUs is how many whole GPUs a trial has, all of one machine; nil where the
	// study does not say: its commands then see what the worker lets them see.
	GPUs *int `json:"gpus,omitempty"`
	// GPUShare is the part of one GPU that a trial takes beside others, instead of
	// whole ones; the zero value where the study does not say.
	GPUShare GPUShare `json:"gpu_share,omitzero"`
	// Cores is how many processor cores are kept for it; 0 where the study does
	// not say.
	Cores int `json:"cores,omitempty"`
	// MemoryGiB is how much memory is kept for it, in GiB; 0 where the study does
	// not say.
	MemoryGiB float64 `json:"memory_gib,omitempty"`
}

// Bounds of what a trial may ask for.
const (
	maxGPUs   = 64
	maxCores  = 4096
	minMemory = 0.0625
	maxMemory = 65536
	// maxParallel bounds the trials of a study at once.
	maxParallel = 1_000_000
)

// resources reads what each trial needs. sys is the study's system section.
func (d *decoder) resources(s section, sys System) *Resources {
	n, at := s.get("resources")
	if n == nil {
		return nil
	}
	part, ok := d.section(at, n, "gpus", "gpu_share", "cores", "memory_gib")
	if !ok {
		return nil
	}
	var wanted Resources
	if gpus, place := part.get("gpus"); gpus != nil {
		number, before := 0, len(d.faults)
		d.wholeOf(place, gpus, 0, maxGPUs, &number)
		if len(d.faults) == before {
			wanted.GPUs = &number
		}
		if sys.sets(system.GPUs) {
			d.fault(place, gpus, "is said by system.gpus too: keep resources.gpus, and take gpus out of system")
		}
	}
	wanted.GPUShare = d.gpuShare(part, sys)
	part.whole("cores", 1, maxCores, &wanted.Cores)
	part.number("memory_gib", minMemory, maxMemory, &wanted.MemoryGiB)
	if wanted == (Resources{}) {
		return nil
	}
	return &wanted
}

// sets reports whether the section says something of the knob.
func (s System) sets(knob string) bool {
	if _, constant := s.Constants[knob]; constant {
		return true
	}
	return s.Tuning != nil && slices.ContainsFunc(s.Tuning.Tuned, func(t system.Tuned) bool { return t.Name == knob })
}
