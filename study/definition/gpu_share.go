package definition

import (
	"encoding/json"
	"fmt"
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

// IsZero reports whether the study shares no GPUs.
func (g GPUShare) IsZero() bool { return g == GPUShare{} }

// MarshalJSON writes "auto", or the part as a number.
func (g GPUShare) MarshalJSON() ([]byte, error) {
	if g.Auto {
		return json.Marshal(Automatic)
	}
	return json.Marshal(g.Part)
}

// UnmarshalJSON reads what MarshalJSON writes; it was checked when it was parsed.
func (g *GPUShare) UnmarshalJSON(data []byte) error {
	*g = GPUShare{}
	if string(data) == `"`+Automatic+`"` {
		g.Auto = true
		return nil
	}
	if err := json.Unmarshal(data, &g.Part); err != nil {
		return fmt.Errorf("gpu_share is %s, and has to be auto or a number", data)
	}
	return nil
}

// SharesGPUs reports whether each trial of the study takes a part of one GPU.
func (d Definition) SharesGPUs() bool {
	return d.Resources != nil && !d.Resources.GPUShare.IsZero()
}
