package heats

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"time"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/workers/placement"
)

// Scale measures how long a replay of 100,000 jobs on 4,000 machines takes, by
// policy, at a load at which jobs have to wait now and then.
func Scale(runs int) error {
	cluster, jobs := large(4000, 100_000)
	fmt.Println("| policy | a replay of 100,000 jobs on 4,000 machines of 8 GPUs, s | given away |\n|---|---|---|")
	policies := []func() replay.Policy{
		policies.FirstFit,
		func() replay.Policy { return policies.Spread(1) },
		func() replay.Policy { return policies.Heats(policies.Recorded(jobs), 1) },
		func() replay.Policy {
			return policies.HeatsMoving(policies.Recorded(jobs), 1, lookEvery, placement.Settings{})
		},
	}
	for _, policy := range policies {
		var took []float64
		var last replay.Outcome
		for range runs {
			begin := time.Now()
			outcome, err := replay.Play(cluster, jobs, policy(), replay.Settings{Move: checkpoint})
			if err != nil {
				return err
			}
			took = append(took, time.Since(begin).Seconds())
			last = outcome
		}
		fmt.Printf("| %s | %.1f (%.1f to %.1f) | %.0f%% |\n", last.Policy, middle(took), slices.Min(took), slices.Max(took), 100*last.Allocated)
	}
	return nil
}

// large is a cluster of four types, and jobs of 20 kinds that keep nearly all of
// it busy.
func large(machines, count int) (replay.Cluster, []replay.Job) {
	random := rand.New(rand.NewPCG(5, 6)) //nolint:gosec // the same for every run
	var cluster replay.Cluster
	for i := range 4 {
		cluster.Types = append(cluster.Types, replay.Type{Name: strconv.Itoa(i), Capacity: placement.Resources{GPUs: gpusPerMachine, Cores: 64}, IdleWatts: 300})
	}
	for i := range machines {
		cluster.Machines = append(cluster.Machines, replay.Machine{Name: "m" + strconv.Itoa(i), Type: strconv.Itoa(i % 4)})
	}
	var profiles []*replay.Profile
	for i := range 20 {
		profile := &replay.Profile{Name: strconv.Itoa(i), On: map[string]placement.Prediction{}}
		for kind := range 4 {
			seconds := 0.5 + random.Float64()
			profile.On[strconv.Itoa(kind)] = placement.Prediction{Seconds: seconds, Joules: seconds * (50 + 200*random.Float64())}
		}
		profiles = append(profiles, profile)
	}
	var jobs []replay.Job
	at := 0.0
	for i := range count {
		gpus := 1 << random.IntN(4)
		// Jobs of an hour with 3.75 GPUs on average fill the cluster at this rate.
		at += random.ExpFloat64() * 3600 * 3.75 / float64(machines*gpusPerMachine) / 0.95
		jobs = append(jobs, replay.Job{Name: strconv.Itoa(i), Profile: profiles[random.IntN(20)], Work: random.ExpFloat64()*3600 + 1, Arrives: at, Needs: placement.Resources{GPUs: gpus, Cores: gpus}})
	}
	return cluster, jobs
}
