package heats

import (
	"fmt"

	"github.com/tandem-tune/tandem/bench/pool/replay"
	"github.com/tandem-tune/tandem/bench/pool/replay/policies"
	"github.com/tandem-tune/tandem/workers/placement"
)

// sensitivity prints by how much the answer depends on how often running jobs
// are looked at, and on what a move costs.
func sensitivity(data string, known []workload, limits []string, runs int, exchanging bool) error {
	load, heats, name := 0.6, policies.HeatsMoving, "HEATS"
	if exchanging {
		load, heats, name = 0.9, policies.HeatsExchanging, "HEATS, exchanging,"
	}
	type variant struct{ every, pause float64 }
	var variants []variant
	for _, every := range []float64{60, 600, 3600} {
		for _, pause := range []float64{0, 30, 300} {
			variants = append(variants, variant{every, pause})
		}
	}
	found := make([]ratios, len(variants))
	for _, file := range heatsTraces {
		arrivals, err := arrivalsOf(data, file)
		if err != nil {
			return err
		}
		for seed := range uint64(runs) {
			s := zeusSite(arrivals, known, limits, power{25, 0}, seed).loaded(load)
			base, err := replay.Play(s.cluster, s.jobs, policies.Spread(seed), replay.Settings{})
			if err != nil {
				return err
			}
			for i, one := range variants {
				policy := heats(policies.Recorded(s.jobs), 1, one.every, placement.Settings{})
				o, err := replay.Play(s.cluster, s.jobs, policy, replay.Settings{Move: placement.Prediction{Seconds: one.pause, Joules: 100 * one.pause}})
				if err != nil {
					return err
				}
				found[i].add(o, base)
			}
		}
	}
	fmt.Printf("\n**How often running jobs are looked at, and what a move costs** (at 100 W): %s at H=1, Zeus's trainings, load %.1f, 25 W idle a GPU\n", name, load)
	fmt.Print("\n| looks every | a move takes | energy | mean completion | moves |\n|---|---|---|---|---|\n")
	for i, one := range variants {
		fmt.Printf("| %.0f s | %.0f s | %s | %s | %.0f |\n", one.every, one.pause, percent(found[i].energy), percent(found[i].mean), middle(found[i].moves))
	}
	return nil
}

// add notes what a policy came to, relative to the default. Energy is that of the same
// time: until the last job of both has ended.
func (r *ratios) add(o, base replay.Outcome) {
	alike := []replay.Outcome{o, base}
	replay.Alike(alike)
	r.energy = append(r.energy, alike[0].Total/alike[1].Total-1)
	r.work = append(r.work, o.Energy.Work/base.Energy.Work-1)
	r.mean = append(r.mean, o.Completion.Mean/base.Completion.Mean-1)
	r.p95 = append(r.p95, o.Completion.P95/base.Completion.P95-1)
	r.makespan = append(r.makespan, o.Makespan/base.Makespan-1)
	r.moves = append(r.moves, float64(o.Migrations))
}
