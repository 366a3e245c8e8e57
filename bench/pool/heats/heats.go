// Package heats compares HEATS with schedulers that know nothing of energy, on
// recorded arrivals and profiles, in simulated time.
package heats

import (
	"fmt"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/workers/placement"
)

// heatsTraces have the arrivals and lengths of jobs.
var heatsTraces = []string{
	"gavel/traces/msr_seed0_0e4a51.trace", "gavel/traces/msr_seed0_103959.trace", "gavel/traces/msr_seed0_2869ce.trace",
	"muri_traces/trace1.csv", "muri_traces/trace3.csv",
}

// checkpoint is what a move is assumed to cost: half a minute at 100 W.
var checkpoint = placement.Prediction{Seconds: 30, Joules: 3000}

// lookEvery is how often running jobs are looked at again, in seconds.
const lookEvery = 600

// heatsPolicies are what is compared; the first is what others are compared
// with.
func heatsPolicies(s site, seed uint64) ([]replay.Policy, error) {
	recorded := policies.Recorded(s.jobs)
	list := []replay.Policy{policies.Spread(seed), policies.Anywhere(seed), policies.FirstFit()}
	for _, energy := range []float64{0, 0.5, 1} {
		list = append(list, policies.Heats(recorded, energy))
	}
	for _, energy := range []float64{0, 1} {
		list = append(list, policies.HeatsMoving(recorded, energy, lookEvery, placement.Settings{}))
	}
	for _, energy := range []float64{0, 1} {
		list = append(list, policies.HeatsExchanging(recorded, energy, lookEvery, placement.Settings{}))
	}
	if len(s.probes) == 0 {
		return list, nil
	}
	for _, energy := range []float64{0, 1} {
		models, err := taught(s)
		if err != nil {
			return nil, err
		}
		policy := policies.HeatsMoving(models, energy, lookEvery, placement.Settings{})
		policy.Name = strings.Replace(policy.Name, "heats", "heats, learned,", 1)
		list = append(list, policy)
		models, err = taught(s)
		if err != nil {
			return nil, err
		}
		policy = policies.HeatsExchanging(models, energy, lookEvery, placement.Settings{})
		policy.Name = strings.Replace(policy.Name, "heats", "heats, learned,", 1)
		list = append(list, policy)
	}
	return list, nil
}

// taught are models that have seen the probes of a site.
func taught(s site) (*placement.Models, error) {
	models := placement.NewModels(placement.ModelSettings{})
	for _, one := range s.probes {
		if _, err := models.Observe(one); err != nil {
			return nil, err
		}
	}
	return models, nil
}

// ratios are what a policy came to, relative to the default.
type ratios struct {
	energy, work, mean, p95, makespan, moves []float64
}

// comparison collects ratios by policy, in the order of the policies.
type comparison struct {
	names  []string
	byName map[string]*ratios
}

// play replays all policies on a site and adds what came of them.
func (c *comparison) play(s site, seed uint64) error {
	policies, err := heatsPolicies(s, seed)
	if err != nil {
		return err
	}
	var base replay.Outcome
	for i, policy := range policies {
		o, err := replay.Play(s.cluster, s.jobs, policy, replay.Settings{Move: checkpoint})
		if err != nil {
			return err
		}
		if i == 0 {
			base = o
		}
		r, known := c.byName[policy.Name]
		if !known {
			r = &ratios{}
			c.names, c.byName[policy.Name] = append(c.names, policy.Name), r
		}
		r.add(o, base)
	}
	return nil
}

func (c *comparison) print() {
	fmt.Println("\n| policy | energy | of it, what jobs add | mean completion | p95 completion | makespan | moves |")
	fmt.Println("|---|---|---|---|---|---|---|")
	for _, name := range c.names {
		r := c.byName[name]
		fmt.Printf("| %s | %s | %s | %s | %s | %s | %.0f |\n", name, percent(r.energy), percent(r.work), percent(r.mean), percent(r.p95), percent(r.makespan), middle(r.moves))
	}
}

// percent is the median of changes with their range.
func percent(changes []float64) string {
	return fmt.Sprintf("%+.1f%% (%+.1f to %+.1f)", 100*middle(changes), 100*slices.Min(changes), 100*slices.Max(changes))
}

func middle(values []float64) float64 {
	sorted := slices.Sorted(slices.Values(values))
	return (sorted[(len(sorted)-1)/2] + sorted[len(sorted)/2]) / 2
}

// Measure prints, for each trace, load and seed, the change against the
// default of Kubernetes; and by how much the answer depends on what was assumed.
func Measure(data string, runs int) error {
	limits := []string{"v100@250", "v100@150", "p100@250", "p100@150"}
	known, err := workloads(data, limits)
	if err != nil {
		return err
	}
	fmt.Printf("Changes against spread (Kubernetes' default): median over traces and %d seeds, and their range. Joules and seconds are computed from recorded profiles, in simulated time.\n", runs)
	for _, load := range []float64{0.3, 0.6, 0.9} {
		for _, assumed := range []power{{25, 0}, {25, 300}} {
			c := comparison{byName: map[string]*ratios{}}
			for _, name := range heatsTraces {
				arrivals, err := arrivalsOf(data, name)
				if err != nil {
					return err
				}
				for seed := range uint64(runs) {
					if err := c.play(zeusSite(arrivals, known, limits, assumed, seed).loaded(load), seed); err != nil {
						return err
					}
				}
			}
			fmt.Printf("\n**Zeus's trainings** (%d of them) on 64 GPUs, V100 and P100 at 250 and 150 W; load %.1f; idle %.0f W a GPU and %.0f W a host (estimates)\n", len(known), load, assumed.idleGPU, assumed.host)
			c.print()
		}
	}
	for _, exchanging := range []bool{false, true} {
		if err := sensitivity(data, known, limits, runs, exchanging); err != nil {
			return err
		}
	}
	return onGavel(data, runs)
}

func onGavel(data string, runs int) error {
	for _, load := range []float64{0.3, 0.6, 0.9} {
		for _, assumed := range []power{{25, 0}, {25, 300}} {
			c := comparison{byName: map[string]*ratios{}}
			for _, name := range heatsTraces[:3] {
				s, err := gavelSite(data, name, assumed)
				if err != nil {
					return err
				}
				for seed := range uint64(runs) {
					if err := c.play(s.loaded(load), seed); err != nil {
						return err
					}
				}
			}
			fmt.Printf("\n**Gavel's jobs** on 48 GPUs, V100, P100 and K80 at their boards' power (an estimate); load %.1f; idle %.0f W a GPU and %.0f W a host (estimates)\n", load, assumed.idleGPU, assumed.host)
			c.print()
		}
	}
	return nil
}
