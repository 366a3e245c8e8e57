package gpu

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/profiler"
)

// faults are how NVIDIA's and AMD's libraries say that a GPU is broken: what
// the trial was about does not matter for it. A lack of memory is none of them, nor
// is an error that a kernel of the trial's own can cause, such as an illegal
// address. In small letters.
var faults = []string{
	"uncorrectable ecc error",                       // cudaErrorECCUncorrectable
	"uncorrectable nvlink error",                    // cudaErrorNvlinkUncorrectable
	"cuda_error_ecc_uncorrectable",                  // the same, by their names
	"cudaerroreccuncorrectable",                     //
	"cuda_error_nvlink_uncorrectable",               //
	"hiperroreccnotcorrectable",                     // HIP's
	"fallen off the bus",                            // the driver's Xid 79
	"gpu is lost",                                   // NVML_ERROR_GPU_IS_LOST
	"unable to determine the device handle for gpu", // nvidia-smi, of one that is lost
}

// Fault is the line of the last things a command said in which a library
// told that a GPU is broken; empty if none does.
func Fault(lastErrors []string) string {
	for _, line := range slices.Backward(lastErrors) {
		small := strings.ToLower(line)
		if slices.ContainsFunc(faults, func(said string) bool { return strings.Contains(small, said) }) {
			return line
		}
	}
	return ""
}

// Lost asks the driver, opened anew, whether a GPU of this machine is gone for
// good. A command's word is not enough for that: any command can print it.
// Where the driver cannot be asked for another reason, none is known to be.
func (d *Driver) Lost() error {
	control, err := d.open()
	if err != nil {
		if errors.Is(err, profiler.ErrGPULost) {
			return err
		}
		return nil
	}
	defer control.Close()
	for device := range control.Count() {
		if _, err := control.PowerLimit(device); errors.Is(err, profiler.ErrGPULost) {
			return fmt.Errorf("GPU %d (%s): %w", device, control.Name(device), err)
		}
	}
	return nil
}
