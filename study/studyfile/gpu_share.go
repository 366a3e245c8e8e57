package studyfile

import (
	"strconv"

	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/studyfile/tree"
	"github.com/tandem-tune/tandem/study/system"
)

// leastPart is the smallest part of a GPU that a study may say, and someGPUShare
// what it may say in words.
const (
	leastPart    = 0.01
	someGPUShare = "auto, or a number between 0.01 and 1"
)

// readGPUShare reads which part of a GPU each trial takes. sys is the study's system
// section.
func readGPUShare(part tree.Section, sys definition.System) (share definition.GPUShare) {
	n, at := part.Get("gpu_share")
	if n == nil {
		return share
	}
	if whole, _ := part.Get("gpus"); whole != nil {
		part.Fault(at, n, "asks for a part of one GPU, and resources.gpus for whole ones: keep one of the two")
		return share
	}
	for _, knob := range []string{system.GPUs, system.GPUPowerWatts, system.GPUClockMHz} {
		if sys.Sets(knob) {
			part.Fault(at, n, "cannot be had beside system.%s, which sets all of a GPU: take it out of system, or ask for resources.gpus", knob)
		}
	}
	switch {
	case n.Kind == tree.Text && n.Raw == definition.Automatic:
		return definition.GPUShare{Auto: true}
	case n.Kind == tree.Number:
		value, err := strconv.ParseFloat(n.Raw, 64)
		if err != nil || value < leastPart || value > 1 {
			part.Fault(at, n, "must be %s", someGPUShare)
			return share
		}
		share.Part = value
	default:
		part.Wrong(at, n, someGPUShare)
	}
	return share
}
