package trace

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/workers/pool"
)

// UserQuota is what a file of machines lets a user have; 0 is no bound.
type UserQuota struct {
	// Trials and GPUs are at once, GPUHoursADay is in each day of the trace.
	Trials       int     `yaml:"trials"`
	GPUs         int     `yaml:"gpus"`
	GPUHoursADay float64 `yaml:"gpu_hours_a_day"`
	// Weight is the fair share against users with weight 1; 0 counts as 1.
	Weight float64 `yaml:"weight"`
}

func (q UserQuota) check() error {
	if q.Trials < 0 || q.GPUs < 0 || q.Trials > 1_000_000 || q.GPUs > 1_000_000 {
		return fmt.Errorf("trials is %d and gpus %d: they must be from 0 (no bound) to 1000000", q.Trials, q.GPUs)
	}
	if !(q.GPUHoursADay >= 0) || q.GPUHoursADay > 1e9 {
		return fmt.Errorf("gpu_hours_a_day is %g: it must be 0 (no bound) or more", q.GPUHoursADay)
	}
	if !(q.Weight >= 0) || q.Weight > 1000 {
		return fmt.Errorf("weight is %g: it must be from 0 (which counts as 1) to 1000", q.Weight)
	}
	return nil
}

func (q UserQuota) quota() pool.Quota {
	return pool.Quota{Trials: q.Trials, GPUs: q.GPUs, GPUSeconds: 3600 * q.GPUHoursADay, Weight: q.Weight}
}

// Deal gives the jobs to so many users at random, in place of those of the trace:
// user-1 has twice as many as user-2 and three times as many as user-3, as users of
// clusters differ (Zipf's law). Traces do not say whose jobs theirs are: this is made
// up, and the trace's notes say so.
func (t *Trace) Deal(users int, seed uint64) {
	random := rand.New(rand.NewPCG(seed, 17)) //nolint:gosec // what is drawn has to repeat
	sum := 0.0
	for rank := range users {
		sum += 1 / float64(rank+1)
	}
	for i := range t.Jobs {
		drawn, rank := random.Float64()*sum, 1
		for ; rank < users; rank++ {
			if drawn -= 1 / float64(rank); drawn < 0 {
				break
			}
		}
		t.Jobs[i].User = fmt.Sprintf("user-%0*d", int(math.Log10(float64(users)))+1, rank)
	}
	t.note("Whose job is whose is made up: they are dealt to %d users at random, half as many to the second as to the first, and so on (-users).", users)
}
