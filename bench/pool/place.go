package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/workers/placement"
)

// places measures a decision for 1,000 tasks and 1,000 machines.
func places(runs int) error {
	fmt.Println("| types of machines | a decision for 1,000 tasks on 1,000 machines, ms |\n|---|---|")
	for _, kinds := range []int{1, 4, 20, 100} {
		random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same for every run
		models := placement.NewModels(placement.ModelSettings{})
		var machines []placement.Machine
		for i := range 1000 {
			machines = append(machines, placement.Machine{
				Name: fmt.Sprint(i), Type: fmt.Sprint(i % kinds), Free: placement.Resources{Cores: 1 + random.IntN(16), MemoryBytes: 64 << 30},
			})
		}
		for kind := range kinds {
			for range 100 {
				x := random.Float64()
				took := placement.Prediction{Seconds: math.Exp(x + random.Float64()), Joules: 3}
				if _, err := models.Observe(placement.Observation{Type: fmt.Sprint(kind), Features: []float64{x, 1, 2}, Took: took}); err != nil {
					return err
				}
			}
		}
		var pending []placement.Task
		for i := range 1000 {
			pending = append(pending, placement.Task{
				Name: fmt.Sprint(i), Needs: placement.Resources{Cores: 1 + random.IntN(4), MemoryBytes: 1 << 30},
				Features: []float64{random.Float64(), 1, 2}, Energy: random.Float64(),
			})
		}
		var took []float64
		for range max(5, runs) {
			begin := time.Now()
			placement.Place(pending, machines, models)
			took = append(took, time.Since(begin).Seconds()*1000)
		}
		slices.Sort(took)
		fmt.Printf("| %d | %.1f (%.1f to %.1f) |\n", kinds, took[len(took)/2], took[0], took[len(took)-1])
	}
	return nil
}
