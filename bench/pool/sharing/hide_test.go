package sharing

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

func TestTheOnlyFamilyIsNotHidden(t *testing.T) {
	var samples []utilization.Sample
	for i := range 16 {
		samples = append(samples, utilization.Sample{Features: utilization.Features{Linear: 1 + i, Batch: 32}, Family: "one", Utilization: 0.5, MemoryBytes: 1 << 30})
	}
	if _, err := hide(samples, utilization.Process, byFamily, 1); err == nil {
		t.Error("the only family was hidden")
	}
	for i := range samples {
		samples[i].Family = fmt.Sprint(i % 2)
	}
	if v, err := hide(samples, utilization.Process, byFamily, 1); err != nil || v.columns()[0] > 1e-9 {
		t.Errorf("trainings that are all alike are off by %+v (%v)", v, err)
	}
}
