package main

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/placement"
	"github.com/tandem-tune/tandem/workers/pool"
)

// crowd is 1,000 workers, each with a trial that leaves room for others, and
// 1,000 studies with a trial that waits.
type crowd struct {
	registry pool.Registry
	leases   pool.Leases
	kinds    map[string]string // the type of each worker
	studies  []pool.Candidate
	tasks    map[string]placement.Task
	models   *placement.Models
}

const crowded = 1000

func newCrowd(kinds int) (*crowd, error) {
	random := rand.New(rand.NewPCG(1, 2)) //nolint:gosec // the same for every run
	c := &crowd{kinds: map[string]string{}, tasks: map[string]placement.Task{}, models: placement.NewModels(placement.ModelSettings{})}
	begin := time.Unix(0, 0)
	for i := range crowded {
		id := fmt.Sprint("worker", i)
		machine := protocol.Machine{Cores: 8 + random.IntN(16), MemoryBytes: 64 << 30}
		c.registry.Register(protocol.WorkerRegistration{ID: id, Name: id, Machine: machine, Slots: 8, Elastic: true}, "", begin)
		c.leases.Grant(pool.Lease{Trial: trial.ID(fmt.Sprint("held", i)), Epoch: 1, Worker: id, Deadline: begin, Cores: 1 + random.IntN(8), MemoryBytes: 1 << 30})
		c.kinds[id] = fmt.Sprint(i % kinds)
		study := fmt.Sprint("study", i)
		c.studies = append(c.studies, pool.Candidate{Study: study, Priority: random.IntN(3), Running: random.IntN(5), Created: begin.Add(time.Duration(random.IntN(1e6)))})
		c.tasks[study] = placement.Task{
			Name: study, Needs: placement.Resources{Cores: 1 + random.IntN(4), MemoryBytes: 1 << 30},
			Features: []float64{random.Float64(), 1, 2}, Energy: random.Float64(),
		}
	}
	for kind := range kinds {
		for range 100 {
			x := random.Float64()
			took := placement.Prediction{Seconds: math.Exp(x + random.Float64()), Joules: 3}
			if _, err := c.models.Observe(placement.Observation{Type: fmt.Sprint(kind), Features: []float64{x, 1, 2}, Took: took}); err != nil {
				return nil, err
			}
		}
	}
	return c, nil
}

// decide orders the studies, looks for room on every worker, and places the
// trials: what decides about all of them at once. It says when each part was
// done.
func (c *crowd) decide() (ordered, roomed, placed time.Duration, assigned int) {
	begin := time.Now()
	studies := slices.Clone(c.studies)
	pool.Order(studies)
	ordered = time.Since(begin)
	var machines []placement.Machine
	for _, member := range c.registry.Members() {
		room := pool.RoomOf(member, c.leases.Of(member.Registration.ID))
		if room.Cores > 0 && room.Trials < room.Slots {
			free := placement.Resources{Cores: room.Cores, MemoryBytes: room.MemoryBytes}
			machines = append(machines, placement.Machine{Name: member.Registration.ID, Type: c.kinds[member.Registration.ID], Free: free})
		}
	}
	roomed = time.Since(begin)
	pending := make([]placement.Task, len(studies))
	for i, one := range studies {
		pending[i] = c.tasks[one.Study]
	}
	for _, machine := range placement.Place(pending, machines, c.models) {
		if machine != "" {
			assigned++
		}
	}
	return ordered, roomed, time.Since(begin), assigned
}

// places measures a decision about 1,000 waiting trials and 1,000 workers.
func places(runs int) error {
	fmt.Println("| types of machines | order, ms | room, ms | placement, ms | the whole decision, ms | trials placed |\n|---|---|---|---|---|---|")
	for _, kinds := range []int{1, 4, 20, 100} {
		c, err := newCrowd(kinds)
		if err != nil {
			return err
		}
		var parts [4][]float64
		assigned := 0
		for range max(5, runs) {
			ordered, roomed, placed, count := c.decide()
			for i, took := range []time.Duration{ordered, roomed - ordered, placed - roomed, placed} {
				parts[i] = append(parts[i], took.Seconds()*1000)
			}
			assigned = count
		}
		fmt.Printf("| %d |", kinds)
		for _, took := range parts {
			slices.Sort(took)
			fmt.Printf(" %.1f (%.1f to %.1f) |", took[len(took)/2], took[0], took[len(took)-1])
		}
		fmt.Printf(" %d |\n", assigned)
	}
	return nil
}
