package poolcmd

import (
	"bytes"
	"strings"
	"testing"

	"github.com/tandem-tune/tandem/internal/protocol"
)

func TestAdviceIsPrinted(t *testing.T) {
	t.Parallel()
	advice := protocol.PoolAdvice{
		Unit: protocol.DemandGPUs, Performance: 0.98, Quantile: 0.9, Reached: true, Wanted: 5, Awake: 8, Total: 12, Missing: 1, Reason: "because", Power: protocol.PowerAssumption{AwakeWatts: 50, AsleepWatts: 25, DelayMinutes: 1},
		Settings:   []protocol.KnobSetting{{Quantile: 0.5, Served: 0.9, Met: 0.5, Saved: 0.3, Wanted: 4}, {Quantile: 0.9, Served: 0.985, Met: 0.9, Saved: 0.25, Wanted: 5}},
		Workers:    []protocol.WorkerAdvice{{ID: "worker-a", Name: "a", Capacity: 4, Action: "drain", Reason: "it runs nothing"}},
		Correction: &protocol.KnobCorrection{Aim: 0.9851, Minutes: 80, Served: 0.9766, Debt: 50},
		Saved:      &protocol.PoolSaving{Minutes: 90, Joules: 5e5, Share: 0.125, Served: 0.99},
	}
	var out bytes.Buffer
	if err := printAdvice(&out, advice); err != nil {
		t.Fatal(err)
	}
	for _, words := range []string{
		"8 of 12 GPUs are awake; 5 should be, so that 98% of the demand finds one (estimate): because", "1 of them no known worker has", "drain", "98.50%", "<- now", "90 minutes", "500 kJ, 12.5%", "99.0% of the demand",
		"Held against the 80 minutes that were compared, it would have served 97.66% of the demand; asked for 98%, it now aims at 98.51% (estimates)",
	} {
		if !strings.Contains(out.String(), words) {
			t.Errorf("it does not say %q:\n%s", words, out.String())
		}
	}
}
