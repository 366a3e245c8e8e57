package replay_test

import (
	"fmt"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
)

// TestPackingStarvesNobody: small jobs keep two machines of two GPUs full for ever, and
// a job comes that needs more of a GPU, or of a machine, than ever is free.
func TestPackingStarvesNobody(t *testing.T) {
	for name, change := range map[string]func(large *replay.Job){
		"most of a GPU": func(large *replay.Job) { large.Utilization = 0.9 },
		"two GPUs":      func(large *replay.Job) { large.Needs.GPUs = 2 },
	} {
		waited := map[int]float64{}
		for _, bound := range []int{-1, 0, 5} {
			large := oneGPU("large", 100.5, 50)
			jobs := []replay.Job{large}
			change(&jobs[0])
			for i := range 600 {
				small := oneGPU(fmt.Sprint(i), float64(8*i), 100)
				small.Utilization, small.Profile = 0.3, large.Profile
				jobs = append(jobs, small)
			}
			o := play(t, cluster(2, 2), jobs, policies.Packed(packed.Settings{MostPassed: bound}), replay.Settings{})
			for _, one := range o.Ended {
				if one.Name == "large" {
					waited[bound] = one.Waited
				}
			}
		}
		// After a bound of twelve (four GPUs of three jobs) or five others, which come every
		// eight seconds, it waits for what runs: 100 seconds.
		if waited[-1] < 3000 || waited[0] > 12*8+110 || waited[5] > 5*8+110 || waited[5] >= waited[0] {
			t.Errorf("%s: it waits for %v s", name, waited)
		}
	}
}
