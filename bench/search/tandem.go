package main

import (
	"context"
	"fmt"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/bench/simulator"
	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/search"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
)

// longLease is no shorter than any recorded epoch: nobody vanishes here, and a
// simulation with fewer heartbeats is faster.
const longLease = 100_000

// runTandem runs every method with every number of workers.
func runTandem(ctx context.Context, tables []*table, o options) ([]finished, error) {
	var runs []finished
	for _, s := range o.setups() {
		started := time.Now()
		for seed := range o.seeds {
			s.seed = uint64(seed + o.first)
			for _, t := range tables {
				one, err := runStudy(ctx, t, o.budget(t), s)
				if err != nil {
					return nil, fmt.Errorf("%s on %s: %w", s.name(), t.name, err)
				}
				runs = append(runs, one)
			}
		}
		fmt.Fprintf(os.Stderr, "%s: %d runs in %.0f s\n", s.name(), o.seeds*len(tables), time.Since(started).Seconds())
	}
	return runs, nil
}

// variants change a study in one way each; they stand behind a method's name.
func variants() map[string]func(*definition.Definition) {
	return map[string]func(*definition.Definition){
		"one":  func(def *definition.Definition) { def.Search.Learning = search.OneRung },
		"down": func(def *definition.Definition) { def.Budget.Rounding = budget.Down },
	}
}

// setups are all that Tandem runs with, without their seeds.
func (o options) setups() []setup {
	var setups []setup
	for _, method := range o.methods {
		for _, climb := range o.climbs {
			for _, workers := range o.workers {
				setups = append(setups, setup{method: method, climb: climb, policy: o.policy, workers: workers, seconds: o.seconds})
			}
		}
	}
	return setups
}

// setup is how Tandem searches.
type setup struct {
	method  string
	climb   string        // a promotion, and an early-stopping rule behind a plus; empty: the problem's own
	policy  budget.Policy // empty: the problem's own
	workers int
	seconds bool // the budget is of time
	seed    uint64
	prior   []protocol.Observation
	// expect is where the optimum is expected, as sure as that; nil: nothing is.
	expect space.Configuration
	sure   space.Sureness
}

func (s setup) name() string {
	name := "tandem " + s.method
	if s.climb != "" {
		name += " " + s.climb
	}
	if s.workers == 1 {
		return name
	}
	return fmt.Sprintf("%s, %d workers", name, s.workers)
}

// apply changes a problem's study to the setup.
func (s setup) apply(def definition.Definition) definition.Definition {
	def.Search.Seed = s.seed
	words := strings.Split(s.method, "+")
	def.Search.Method = words[0]
	for _, word := range words[1:] {
		if change, known := variants()[word]; known {
			change(&def)
		}
	}
	if s.expect != nil {
		def.Space.Parameters = slices.Clone(def.Space.Parameters)
		for i, p := range def.Space.Parameters {
			if value, given := s.expect[p.Name]; given {
				def.Space.Parameters[i].Expect = &space.Expectation{Value: value, Sure: s.sure}
			}
		}
	}
	if s.policy != "" {
		def.Budget.Policy = s.policy
	}
	if promotion, rule, stops := strings.Cut(s.climb, "+"); s.climb != "" {
		def.Search.Promotion = budget.Promotion(promotion)
		if def.Search.Promotion != budget.Asynchronous {
			def.Search.Brackets = 0
		}
		if stops {
			early := stopping.Default(stopping.Rule(rule), def.Budget.Eta)
			def.Search.EarlyStopping = &early
		}
	}
	return def
}

// runStudy simulates one study. Its incumbent is the study's recommendation.
func runStudy(ctx context.Context, t *table, budget float64, s setup) (finished, error) {
	bounds := simulator.Options{Workers: s.workers, Seed: s.seed, MaxCost: budget, LeaseSeconds: longLease, Prior: s.prior}
	spent := func(p simulator.Point) float64 { return p.Cost }
	if s.seconds {
		bounds.MaxCost, bounds.MaxSeconds = 0, budget
		spent = func(p simulator.Point) float64 { return p.Seconds }
	}
	trace, err := simulator.Run(ctx, s.apply(t.definition), t, bounds)
	if err != nil {
		return finished{}, err
	}
	one := finished{method: s.name(), problem: t.name, seed: s.seed, workers: s.workers, budget: budget, seconds: trace.Seconds}
	one.follow(t, trace.Points, spent)
	return one, nil
}
