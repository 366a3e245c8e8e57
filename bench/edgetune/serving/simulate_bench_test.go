package serving_test

import (
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/serving"
)

// BenchmarkSimulate plays a million requests, percentiles and intervals included.
func BenchmarkSimulate(b *testing.B) {
	server := fixedCost(b, true)
	for _, policy := range []serving.Policy{serving.Greedy(32), {MaxBatch: 8, WaitSeconds: 0.01}} {
		b.Run(policy.String(), func(b *testing.B) {
			for b.Loop() {
				if _, err := serving.Simulate(server, policy, serving.Run{Arrivals: serving.Poisson{Rate: 400}, Requests: 1_000_000, Seed: 1}); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}
