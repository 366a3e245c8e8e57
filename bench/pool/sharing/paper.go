package sharing

import (
	"fmt"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/workers/placement"
)

// described is the paper's set-up as far as it is described (section 4.1, figure 2a,
// section 6): its jobs keep a GPU busy for 20 to 90% of the time, here evenly, so
// that slots reach the paper's 43% nearly. Which of them there were how often is not
// said, nor is what they do to each other but for figure 5a, so that two rules are
// played: a GPU is shared without loss until it is full; and each is slowed down the
// more is wanted of it, by 10% where two want 40% and by 200% where they want 180%,
// which are the ends of that figure, in a straight line between: an assumption.
func described() []mix {
	const kinds = 36
	without := mix{name: "the paper's set-up, GPUs shared without loss (an assumption)", gpu: "2080", slowdown: replay.ByUtilization}
	share := map[string]float64{}
	for i := range kinds {
		name, utilization := fmt.Sprint("model", i), 0.2+0.7*float64(i)/(kinds-1)
		share[name] = utilization
		without.kinds = append(without.kinds, kind{&replay.Profile{Name: name, On: map[string]placement.Prediction{"2080": {Seconds: 1, Joules: 1}}}, utilization})
	}
	without.measured = func(a, b string) float64 { return 2 / max(1, share[a]+share[b]) }
	slowed := without
	slowed.name = "the paper's set-up, slowed down as in its figure 5a (an assumption between its ends)"
	slowed.slowdown = func(_ string, jobs []*replay.Job) []float64 {
		wanted := 0.0
		for _, one := range jobs {
			wanted += one.Utilization
		}
		speeds := make([]float64, len(jobs))
		for i := range speeds {
			speeds[i] = 1
			if len(jobs) > 1 {
				speeds[i] = figure5a(wanted)
			}
		}
		return speeds
	}
	slowed.measured = func(a, b string) float64 { return 2 * figure5a(share[a]+share[b]) }
	return []mix{without, slowed}
}

// figure5a is how fast each of several jobs is that want so much of a GPU together.
func figure5a(wanted float64) float64 {
	slowdown := 0.1 + (2-0.1)*(wanted-0.4)/(1.8-0.4)
	return 1 / (1 + max(0.1, slowdown))
}
