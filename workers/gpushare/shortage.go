package gpushare

import (
	"cmp"
	"fmt"

	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/gpushare/packing"
)

// mostShortages is how often a trial may run out of memory on a GPU that it shares:
// then it has a GPU to itself.
const mostShortages = 3

// needsWholeGPU reports whether the trial has GPUs to itself, of whichever size, after
// what it learned from running out of memory.
func needsWholeGPU(t trial.Trial) bool {
	learned := t.GPUShortage
	return learned != nil && (learned.Times >= mostShortages || learned.GPUMemoryBytes > 0 && learned.NeedBytes >= learned.GPUMemoryBytes)
}

// AfterShortage is the trial after it ran out of memory on a GPU that it shared, with
// so much memory, or 0 where that is not known: that is no failure of its own. It comes
// back with a larger need (packing.Resubmit), and alone in the end. failure is what the
// worker says of it.
func AfterShortage(t trial.Trial, gpuBytes int64, failure string) (again trial.Trial, reason string) {
	shortage := trial.GPUShortage{}
	if t.GPUShortage != nil {
		shortage = *t.GPUShortage
	}
	shortage.Times++
	if gpuBytes > 0 { // else its worker has not registered again yet
		shortage.GPUMemoryBytes = gpuBytes
	}
	held := int64(0)
	if t.GPUUse != nil {
		held = t.GPUUse.MemoryBytes
	}
	job := packing.Job{Name: string(t.ID), MemoryBytes: max(t.GPUShare.MemoryBytes, shortage.NeedBytes)}
	larger, err := packing.Resubmit(job, held, cmp.Or(shortage.GPUMemoryBytes, mostBytes))
	if err != nil || shortage.Times >= mostShortages {
		larger.MemoryBytes = max(shortage.GPUMemoryBytes, larger.MemoryBytes)
	}
	shortage.NeedBytes = larger.MemoryBytes
	t.GPUShortage = &shortage
	how := fmt.Sprintf("%.3g GiB are kept for it from now on", float64(shortage.NeedBytes)/gibibyte)
	if needsWholeGPU(t) {
		how = "it has a GPU to itself from now on"
	}
	return t, fmt.Sprintf("ran out of GPU memory beside other trials (%d of at most %d times), which is no failure of its own: %s; %s",
		shortage.Times, mostShortages, how, failure)
}
