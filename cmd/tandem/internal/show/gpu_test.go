package show

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestWhatATrialShouldUseIsPrinted(t *testing.T) {
	t.Parallel()
	var out bytes.Buffer
	PrintGPUExpected(&out, nil)
	PrintGPUExpected(&out, &protocol.GPUExpected{GPUs: []protocol.GPUEstimate{
		{GPU: "NVIDIA A100", Utilization: 0.42, UtilizationLow: 0.3, UtilizationHigh: 0.55, MemoryBytes: 3 << 30, MemoryLow: 2 << 30, MemoryHigh: 4 << 30, Trainings: 37, UtilizationOff: 0.04, MemoryOff: 0.08, Unseen: true},
		{GPU: "NVIDIA T4", Reason: "3 trainings were seen"},
	}})
	for _, words := range []string{"on NVIDIA A100: 0.42 (0.30 to 0.55), 3", "an estimate from 37 trainings, usually off by 0.04 and 8% of the memory, none of them of its architecture\n", "on NVIDIA T4: not known, 3 trainings were seen\n"} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out.String())
		}
	}
}
