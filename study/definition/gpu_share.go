package definition

import (
	"encoding/json"
	"fmt"
	"strconv"

	"github.com/tandem-tune/tandem/study/system"
)

// GPUShare is the part of one GPU that each trial of a study takes, beside other
// trials. The zero value is none: the study does not share GPUs.
type GPUShare struct {
	// Auto says that the part is what trials of the study are seen to use, or are
	// predicted to.
	Auto bool
	// Part is the part that the user says, above 0 and at most 1: of the time in
	// which the GPU is busy, and of its memory. 0 with Auto.
	Part float64
}

// leastPart is the smallest part of a GPU that a study may say, and someGPUShare
// what it may say in words.
const (
	leastPart    = 0.01
	someGPUShare = "auto, or a number between 0.01 and 1"
)

// IsZero reports whether the study shares no GPUs.
func (g GPUShare) IsZero() bool { return g == GPUShare{} }

// MarshalJSON writes "auto", or the part as a number.
func (g GPUShare) MarshalJSON() ([]byte, error) {
	if g.Auto {
		return json.Marshal(automatic)
	}
	return json.Marshal(g.Part)
}

// UnmarshalJSON reads what MarshalJSON writes; it was checked when it was parsed.
func (g *GPUShare) UnmarshalJSON(data []byte) error {
	*g = GPUShare{}
	if string(data) == `"`+automatic+`"` {
		g.Auto = true
		return nil
	}
	if err := json.Unmarshal(data, &g.Part); err != nil {
		return fmt.Errorf("gpu_share is %s, and has to be auto or a number", data)
	}
	return nil
}

// gpuShare reads which part of a GPU each trial takes. sys is the study's system
// section.
func (d *decoder) gpuShare(part section, sys System) (share GPUShare) {
	n, at := part.get("gpu_share")
	if n == nil {
		return share
	}
	if whole, _ := part.get("gpus"); whole != nil {
		d.fault(at, n, "asks for a part of one GPU, and resources.gpus for whole ones: keep one of the two")
		return share
	}
	for _, knob := range []string{system.GPUs, system.GPUPowerWatts, system.GPUClockMHz} {
		if sys.sets(knob) {
			d.fault(at, n, "cannot be had beside system.%s, which sets all of a GPU: take it out of system, or ask for resources.gpus", knob)
		}
	}
	switch {
	case n.kind == text && n.raw == automatic:
		return GPUShare{Auto: true}
	case n.kind == number:
		part, err := strconv.ParseFloat(n.raw, 64)
		if err != nil || part < leastPart || part > 1 {
			d.fault(at, n, "must be %s", someGPUShare)
			return share
		}
		share.Part = part
	default:
		d.wrong(at, n, someGPUShare)
	}
	return share
}

// SharesGPUs reports whether each trial of the study takes a part of one GPU.
func (d Definition) SharesGPUs() bool {
	return d.Resources != nil && !d.Resources.GPUShare.IsZero()
}
