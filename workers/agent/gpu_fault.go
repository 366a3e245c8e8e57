package agent

import (
	"errors"
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/profiler"
)

// gpuFaults are how NVIDIA's and AMD's libraries say that a GPU is broken: what
// the trial was about does not matter for it. A lack of memory is none of them
// (see memoryErrors), nor is what a kernel of the trial's own can bring about,
// such as an illegal address. In small letters.
var gpuFaults = []string{
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

// gpuFault is the line of the last things a command said in which a library
// told that a GPU is broken; empty if none does.
func gpuFault(lastErrors []string) string {
	for _, line := range slices.Backward(lastErrors) {
		small := strings.ToLower(line)
		if slices.ContainsFunc(gpuFaults, func(said string) bool { return strings.Contains(small, said) }) {
			return line
		}
	}
	return ""
}

// brokeHere is how a lease ends whose command failed for this machine's sake:
// another worker is given the trial, whose own retries stay as they are.
func brokeHere(result exit, fault string) protocol.FinishRequest {
	return protocol.FinishRequest{Outcome: protocol.Vanished, Reason: fmt.Sprintf("%s (exit code %d): %s", protocol.GPUFailed, result.code, fault)}
}

// lost asks the driver, opened anew, whether a GPU of this machine is gone for
// good. A command's word is not enough for that: any command can print it.
// Where the driver cannot be asked for another reason, none is known to be.
func (d *gpuDriver) lost() error {
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
