package main

import (
	"context"
	"fmt"
	"os"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/simulator"
)

// longLease is no shorter than any recorded epoch: nobody vanishes here, and a
// simulation with fewer heartbeats is faster.
const longLease = 100_000

// runTandem runs every method with every number of workers.
func runTandem(ctx context.Context, tables []*table, o options) ([]finished, error) {
	var runs []finished
	for _, method := range o.methods {
		for _, workers := range o.workers {
			started := time.Now()
			for seed := range o.seeds {
				for _, t := range tables {
					one, err := runStudy(ctx, t, o.budget(t), setup{method: method, workers: workers, seed: uint64(seed + o.first)})
					if err != nil {
						return nil, fmt.Errorf("%s on %s: %w", method, t.name, err)
					}
					runs = append(runs, one)
				}
			}
			fmt.Fprintf(os.Stderr, "%s: %d runs in %.0f s\n", setup{method: method, workers: workers}.name(), o.seeds*len(tables), time.Since(started).Seconds())
		}
	}
	return runs, nil
}

// widened behind a method's name lets it widen rungs (search.widen).
const widened = "+widen"

// setup is how Tandem searches.
type setup struct {
	method  string
	workers int
	seed    uint64
	prior   []protocol.Observation
}

func (s setup) name() string {
	if s.workers == 1 {
		return "tandem " + s.method
	}
	return fmt.Sprintf("tandem %s, %d workers", s.method, s.workers)
}

// runStudy simulates one study. Its incumbent is the study's recommendation.
func runStudy(ctx context.Context, t *table, budget float64, s setup) (finished, error) {
	def := t.definition
	def.Search.Seed = s.seed
	def.Search.Method, def.Search.Widen = strings.CutSuffix(s.method, widened)
	trace, err := simulator.Run(ctx, def, t, simulator.Options{Workers: s.workers, Seed: s.seed, MaxCost: budget, LeaseSeconds: longLease, Prior: s.prior})
	if err != nil {
		return finished{}, err
	}
	one := finished{method: s.name(), problem: t.name, seed: s.seed, workers: s.workers, budget: budget, seconds: trace.Seconds}
	incumbent := -1
	for _, point := range trace.Points {
		if point.Incumbent != incumbent {
			incumbent = point.Incumbent
			one.marks = append(one.marks, mark{point.Cost, point.Seconds, t.regret(point.True)})
		}
	}
	return one, nil
}
