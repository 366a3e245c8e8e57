package definition

import (
	"encoding/json"
	"fmt"
	"slices"

	"github.com/tandem-tune/tandem/study/system"
	"github.com/tandem-tune/tandem/trial"
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

// Asked are the resources that each trial asks for; the zero value where it does not.
func (d Definition) Asked() Resources {
	if d.Resources != nil {
		return *d.Resources
	}
	return Resources{}
}

// GPUsEach is how many GPUs a trial needs at least and takes at most; both are 0 where
// the study says nothing of them.
func (d Definition) GPUsEach() (least, most int) {
	if asked := d.Asked().GPUs; asked != nil {
		return *asked, *asked
	}
	if n, constant := d.System.Constants[system.GPUs].Number(); constant {
		return int(n), int(n)
	}
	if d.System.Tuning == nil { // what Automatic tunes are no GPUs
		return 0, 0
	}
	for _, tuned := range d.System.Tuning.Tuned {
		if tuned.Name != system.GPUs || len(tuned.Values) == 0 {
			continue
		}
		var counts []int
		for _, value := range tuned.Values {
			n, _ := value.Number()
			counts = append(counts, int(n))
		}
		return slices.Min(counts), slices.Max(counts)
	}
	return 0, 0
}

// GPUCount is how many GPUs the command of a trial with the setting shall see; nil where
// that is left to its worker.
func (d Definition) GPUCount(setting *trial.Setting) *int {
	count := -1
	if d.SharesGPUs() {
		count = 1
	}
	if asked := d.Asked().GPUs; asked != nil {
		count = *asked
	} else if n, has := d.System.Constants[system.GPUs].Number(); has {
		count = int(n)
	}
	if setting != nil {
		if n, has := setting.Configuration[system.GPUs].Number(); has {
			count = int(n)
		}
	}
	if count < 0 {
		return nil
	}
	return &count
}
