package gpu

import (
	"errors"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/workers/agent/agenttest"
)

func TestGPUFaultsAreToldFromOtherFailures(t *testing.T) {
	// As PyTorch ends: what happened, and below it how to find out more.
	torch := func(said string) []string {
		return []string{"RuntimeError: CUDA error: " + said,
			"CUDA kernel errors might be asynchronously reported at some other API call, so the stacktrace below might be incorrect.",
			"For debugging consider passing CUDA_LAUNCH_BLOCKING=1", "Compile with `TORCH_USE_CUDA_DSA` to enable device-side assertions."}
	}
	for name, test := range map[string]struct {
		errors []string
		broken bool
	}{
		"ECC":                       {torch("uncorrectable ECC error encountered"), true},
		"NVLink":                    {torch("uncorrectable NVLink error detected during the execution"), true},
		"HIP":                       {[]string{"hipErrorECCNotCorrectable"}, true},
		"off the bus":               {[]string{"NVRM: Xid (PCI:0000:41:00): 79, GPU has fallen off the bus."}, true},
		"nvidia-smi":                {[]string{"Unable to determine the device handle for GPU 0000:41:00.0: GPU is lost.  Reboot the system to recover this GPU"}, true},
		"memory":                    {[]string{"torch.OutOfMemoryError: CUDA out of memory. Tried to allocate 2 GiB"}, false},
		"the trial's own kernel":    {torch("an illegal memory access was encountered"), false},
		"the trial's own assertion": {torch("device-side assert triggered"), false},
		"nothing said":              {nil, false},
	} {
		t.Run(name, func(t *testing.T) {
			if got := Fault(test.errors); (got != "") != test.broken || test.broken && got != test.errors[0] {
				t.Errorf("got %q of %q", got, test.errors)
			}
		})
	}
}

func TestOnlyTheDriverSaysThatAGPUIsGone(t *testing.T) {
	for name, test := range map[string]struct {
		control Control
		err     error
		lost    string
	}{
		"all are there":             {agenttest.NewGPUs(2), nil, ""},
		"no driver":                 {nil, errors.New("no NVIDIA driver is installed here"), ""},
		"one is gone":               {agenttest.LostGPUs{GPUs: agenttest.NewGPUs(1)}, nil, "GPU 0 (GPU-0): the GPU has fallen off the bus"},
		"gone before it was listed": {nil, profiler.ErrGPULost, "the GPU has fallen off the bus"},
	} {
		t.Run(name, func(t *testing.T) {
			driver := Driver{open: func() (Control, error) { return test.control, test.err }}
			switch err := driver.Lost(); {
			case test.lost == "" && err != nil:
				t.Errorf("got %v", err)
			case test.lost != "" && (err == nil || !strings.Contains(err.Error(), test.lost)):
				t.Errorf("got %v, want %s", err, test.lost)
			}
		})
	}
}
