package show

import (
	"fmt"
	"io"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// GPUShare says which part of a GPU a trial should take.
func GPUShare(share trial.GPUShare) string {
	if share.Alone {
		return "nobody joins it there at the moment: " + format.Plain(share.Basis)
	}
	return fmt.Sprintf("should keep it busy for %.0f %% of the time and hold %s (an estimate: %s)", 100*share.Utilization, GiB(share.MemoryBytes), format.Plain(share.Basis))
}

// GPUUse says what a trial was seen to use.
func GPUUse(use trial.GPUUse) string {
	with := "beside others"
	if use.Alone {
		with = "alone"
	}
	if use.Seconds == 0 {
		return "at most " + GiB(use.MemoryBytes) + " held (how busy it keeps a shared GPU is not told here)"
	}
	return fmt.Sprintf("busy for %.0f %% of %s %s, at most %s held", 100*use.Utilization, format.Seconds(use.Seconds), with, GiB(use.MemoryBytes))
}

// GiB is an amount of memory.
func GiB(bytes int64) string { return fmt.Sprintf("%.3g GiB", float64(bytes)/(1<<30)) }

// PrintGPUExpected says what the trial should use of GPUs.
func PrintGPUExpected(out io.Writer, expected *protocol.GPUExpected) {
	if expected == nil {
		return
	}
	for _, one := range expected.GPUs {
		if !one.Known() {
			fmt.Fprintf(out, "GPU use expected on %s: not known, %s\n", format.Plain(one.GPU), format.Plain(one.Reason))
			continue
		}
		fmt.Fprintf(out, "GPU use expected on %s: %.2f (%.2f to %.2f), %s (%s to %s); an estimate from %s, usually off by %.2f and %.0f%% of the memory", format.Plain(one.GPU),
			one.Utilization, one.UtilizationLow, one.UtilizationHigh, format.Size(one.MemoryBytes), format.Size(one.MemoryLow), format.Size(one.MemoryHigh),
			format.Count(one.Trainings, "training"), one.UtilizationOff, 100*one.MemoryOff)
		if one.Unseen {
			fmt.Fprint(out, ", none of them of its architecture")
		}
		fmt.Fprintln(out)
	}
}
