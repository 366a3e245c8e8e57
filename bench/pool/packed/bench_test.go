package packed_test

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/bench/pool/packed"
)

// BenchmarkProactive decides about 1,000 jobs that wait for 1,000 GPUs, half of
// which are shared already.
func BenchmarkProactive(b *testing.B) {
	random := rand.New(rand.NewPCG(1, 2))
	var waiting []packed.Job
	var site []packed.GPU
	for i := range 1000 {
		waiting = append(waiting, job(fmt.Sprint(i), random.Float64(), 1+random.Int64N(8)))
		gpu := packed.GPU{Name: fmt.Sprint(i), FreeBytes: 12 * gigabyte}
		if i%2 == 0 {
			gpu.Jobs, gpu.Utilization, gpu.Residents = 1, random.Float64(), []string{"r"}
		}
		site = append(site, gpu)
	}
	for name, settings := range map[string]packed.Settings{
		"first":     {},
		"preferred": {Prefers: func(_, resident string) float64 { return float64(len(resident)) }},
	} {
		b.Run(name, func(b *testing.B) {
			for b.Loop() {
				packed.Proactive(waiting, site, settings)
			}
		})
	}
}
