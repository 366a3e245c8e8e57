package trial_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/trial"
)

func TestGPUUseAddsUp(t *testing.T) {
	alone := func(share, seconds float64, memory int64) *trial.GPUUse {
		return &trial.GPUUse{Utilization: share, Seconds: seconds, MemoryBytes: memory, GPUMemoryBytes: 100, Alone: true, Method: trial.GPUUseByProcess}
	}
	beside := func(share, seconds float64, memory int64) *trial.GPUUse {
		use := alone(share, seconds, memory)
		use.Alone = false
		return use
	}
	for name, test := range map[string]struct {
		first, second *trial.GPUUse
		want          trial.GPUUse
	}{
		"by time":                         {alone(0.2, 30, 5), alone(0.5, 60, 4), *alone(0.4, 90, 5)},
		"the first that is seen":          {nil, alone(0.2, 30, 5), *alone(0.2, 30, 5)},
		"nothing new":                     {alone(0.2, 30, 5), nil, *alone(0.2, 30, 5)},
		"alone goes before shared":        {alone(0.4, 60, 5), beside(0.1, 600, 9), *alone(0.4, 60, 9)},
		"alone replaces shared":           {beside(0.1, 600, 9), alone(0.4, 60, 5), *alone(0.4, 60, 9)},
		"shared alone with itself":        {beside(0.1, 10, 1), beside(0.3, 10, 2), *beside(0.2, 20, 2)},
		"memory alone says nothing else":  {alone(0.4, 60, 5), &trial.GPUUse{MemoryBytes: 8, GPUMemoryBytes: 100}, *alone(0.4, 60, 8)},
		"after memory comes utilization":  {&trial.GPUUse{MemoryBytes: 8, GPUMemoryBytes: 100, Alone: true}, beside(0.4, 60, 5), *beside(0.4, 60, 8)},
		"the device's own where in doubt": {alone(0.4, 60, 5), &trial.GPUUse{Utilization: 0.4, Seconds: 60, Alone: true, GPUMemoryBytes: 100, Method: trial.GPUUseOfDevice}, trial.GPUUse{Utilization: 0.4, Seconds: 120, MemoryBytes: 5, GPUMemoryBytes: 100, Alone: true, Method: trial.GPUUseOfDevice}},
	} {
		t.Run(name, func(t *testing.T) {
			got := test.first.Plus(test.second)
			if math.Abs(got.Utilization-test.want.Utilization) > 1e-12 {
				t.Errorf("utilization %g, want %g", got.Utilization, test.want.Utilization)
			}
			got.Utilization = test.want.Utilization
			if *got != test.want {
				t.Errorf("got %+v, want %+v", *got, test.want)
			}
		})
	}
	if got := (*trial.GPUUse)(nil).Plus(nil); got != nil {
		t.Errorf("of nothing came %+v", got)
	}
	first := alone(0.2, 30, 5)
	first.Plus(alone(0.5, 60, 9))
	if *first != *alone(0.2, 30, 5) {
		t.Errorf("what was added to has changed: %+v", first)
	}
}
