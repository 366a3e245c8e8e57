package batching_test

import (
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/batching"
)

// BenchmarkSimulate plays a million requests, percentiles and intervals included.
func BenchmarkSimulate(b *testing.B) {
	server := fixedCost(b, true)
	for _, policy := range []batching.Policy{batching.Greedy(32), {MaxBatch: 8, WaitSeconds: 0.01}} {
		b.Run(policy.String(), func(b *testing.B) {
			for b.Loop() {
				batching.Simulate(server, policy, batching.Run{Arrivals: batching.Poisson{Rate: 400}, Requests: 1_000_000, Seed: 1})
			}
		})
	}
}
