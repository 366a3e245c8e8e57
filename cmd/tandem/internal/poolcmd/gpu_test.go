package poolcmd

import (
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func TestWhatATrialHasOfAGPUIsSaid(t *testing.T) {
	runs := []protocol.PoolRun{{Trial: "s-1", Study: "lenet\x1b", Number: 1}, {Trial: "s-2", Study: "lenet\x1b", Number: 2}}
	share := &trial.GPUShare{Utilization: 0.3, MemoryBytes: 4 << 30, Basis: "it was observed alone for 70 s"}
	for want, one := range map[string]protocol.PoolGPU{
		"GPUs 0, 1 for itself": {Places: []int{0, 1}},
		"GPU 0 beside lenet trial 2, 1 trial of other users: should keep it busy for 30 % of the time and hold 4 GiB (an estimate: it was observed alone for 70 s); seen: busy for 28 % of 1m10s alone, at most 3.5 GiB held": {
			Places: []int{0}, Share: share, Beside: []trial.ID{"s-2"}, Others: 1, Use: &trial.GPUUse{Utilization: 0.28, Seconds: 70, Alone: true, MemoryBytes: 7 << 29}},
		"GPU 1: nobody joins it there at the moment: nothing is known; seen: at most 2 GiB held (how busy it keeps a shared GPU is not told here)": {
			Places: []int{1}, Share: &trial.GPUShare{Alone: true, Basis: "nothing is known"}, Use: &trial.GPUUse{MemoryBytes: 2 << 30}},
	} {
		if got := shownPoolGPU(one, runs); got != want {
			t.Errorf("got  %q\nwant %q", got, want)
		}
	}
}
