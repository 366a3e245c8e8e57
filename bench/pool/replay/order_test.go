package replay_test

import (
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
)

// In the order in which they came, the long job begins when the short ones have
// ended, and one GPU idles; the longest first, both GPUs end at once.
func TestTheLongestGoesFirst(t *testing.T) {
	jobs := func(change func([]replay.Job)) []replay.Job {
		list := []replay.Job{oneGPU("short", 0, 10), oneGPU("shorter", 0, 9), oneGPU("long", 0, 20), oneGPU("shortest", 0, 1)}
		change(list)
		return list
	}
	asTheyAre := func([]replay.Job) {}
	for _, one := range []struct {
		what     string
		jobs     []replay.Job
		policy   replay.Policy
		makespan float64
	}{
		{"as they came", jobs(asTheyAre), policies.FirstFit(), 29},
		{"the longest first", jobs(asTheyAre), policies.LongestFirst(policies.FirstFit()), 20},
		{"packed, alone", jobs(asTheyAre), policies.LongestFirst(policies.Packed(packed.Settings{MostUtilization: 0.1})), 20},
		{"priorities come before", jobs(func(list []replay.Job) { list[0].Priority, list[1].Priority = 1, 1 }), policies.LongestFirst(policies.FirstFit()), 29},
	} {
		o := play(t, cluster(1, 2), one.jobs, one.policy, replay.Settings{})
		near(t, one.what+": the makespan", o.Makespan, one.makespan, exact)
	}
}
