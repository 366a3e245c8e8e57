package placement_test

import (
	"math"
	"testing"

	"github.com/tandem-tune/tandem/workers/placement"
)

func probe(workload, setting string, seconds, joules float64) placement.Probe {
	return placement.Probe{Workload: workload, Setting: setting, Took: placement.Prediction{Seconds: seconds, Joules: joules}}
}

func TestProbesSayHowMuchSlowerAMachineIs(t *testing.T) {
	server := []placement.Probe{probe("k-means", "performance", 10, 500), probe("matrices", "performance", 4, 300), probe("matrices", "powersave", 8, 250)}
	for name, test := range map[string]struct {
		other []placement.Probe
		want  placement.Prediction
		known bool
	}{
		"the mean over workloads":                {[]placement.Probe{probe("k-means", "performance", 40, 250), probe("matrices", "performance", 64, 1200)}, placement.Prediction{Seconds: 8, Joules: math.Sqrt(2)}, true},
		"where a setting is alike, only by that": {[]placement.Probe{probe("matrices", "powersave", 16, 250), probe("k-means", "ondemand", 99, 99)}, placement.Prediction{Seconds: 2, Joules: 1}, true},
		"else over settings":                     {[]placement.Probe{probe("k-means", "", 20, 250)}, placement.Prediction{Seconds: 2, Joules: 0.5}, true},
		"without a meter":                        {[]placement.Probe{probe("k-means", "performance", 20, 0)}, placement.Prediction{Seconds: 2}, true},
		"no probe in common":                     {[]placement.Probe{probe("sorting", "performance", 1, 1)}, placement.Prediction{}, false},
		"no probe that can have been":            {[]placement.Probe{probe("k-means", "performance", math.NaN(), 1), probe("matrices", "performance", -1, 1)}, placement.Prediction{}, false},
		"none":                                   {nil, placement.Prediction{}, false},
	} {
		t.Run(name, func(t *testing.T) {
			got, known := placement.Ratio(server, test.other)
			if known != test.known || math.Abs(got.Seconds-test.want.Seconds) > 1e-9 || math.Abs(got.Joules-test.want.Joules) > 1e-9 {
				t.Errorf("%+v, %t; want %+v, %t", got, known, test.want, test.known)
			}
		})
	}
	if got := (placement.Prediction{Seconds: 3, Joules: 5}).Times(placement.Prediction{Seconds: 2, Joules: 0}); got != (placement.Prediction{Seconds: 6}) {
		t.Errorf("%+v", got)
	}
}
