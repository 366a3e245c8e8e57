package definition

import (
	"slices"

	"github.com/tandem-tune/tandem/study/selector"
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
	// Selector says which machines may run it.
	selector.Selector
}

// Sets reports whether the section says something of the knob.
func (s System) Sets(knob string) bool {
	if _, constant := s.Constants[knob]; constant {
		return true
	}
	return s.Tuning != nil && slices.ContainsFunc(s.Tuning.Tuned, func(t system.Tuned) bool { return t.Name == knob })
}
