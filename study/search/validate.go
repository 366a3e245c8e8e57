package search

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/stopping"
	"github.com/tandem-tune/tandem/study/space"
)

// The bounds within which Hyperband's weights are finite.
const (
	maxRungs = 100
	maxEta   = 1_000
)

func (s Settings) validate() []problem.Field {
	var faults []problem.Field
	require := func(ok bool, path string, value any, format string, args ...any) {
		if !ok {
			faults = append(faults, problem.Field{Path: path, Message: fmt.Sprintf(format, args...), Value: value})
		}
	}
	_, known := methods()[s.Method]
	require(known, "search.method", s.Method, "must be one of %s", strings.Join(Names(), ", "))
	require(s.Promotion.OrDefault().Known(), "search.promotion", string(s.Promotion), "must be asynchronous, synchronous or none")
	require(s.Restarts.OrDefault().Known(), "search.restarts", string(s.Restarts), "must be ipop, bipop or none")
	require(s.Learning == "" || s.Learning.Known(), "search.learning", string(s.Learning), "must be lower_rungs or one_rung")
	require(s.Promotion != budget.NoPromotion || s.Brackets <= 0, "search.brackets", s.Brackets,
		"must be left out with promotion: none, as every trial then starts at the top rung")
	require(len(s.Rungs) == 0 || !s.Rungs[0].Budget.Measured() || s.EarlyStopping == nil || s.EarlyStopping.Rule != stopping.Halving,
		"search.early_stopping", "halving", "cannot be halving with a budget in seconds or joules, as its rungs are no epochs: use median or percentile")
	require(len(s.Rungs) > 0 && len(s.Rungs) <= maxRungs, "budget", len(s.Rungs), "must give a ladder of 1 to %d rungs", maxRungs)
	for i, rung := range s.Rungs {
		require(rung.Index == i, "budget", rung.Index, "must count its rungs from 0 without gaps: rung %d", i)
	}
	require(s.Eta >= 2 && s.Eta <= maxEta, "budget.eta", s.Eta, "must be between 2 and %d", maxEta)
	require(s.Brackets >= 0, "search.brackets", s.Brackets, "must be at least 0 (0 means all)")
	require(s.MaxTrials >= 0, "stop.trials", s.MaxTrials, "must be at least 0 (0 means no bound)")
	require(s.RandomFraction >= 0 && s.RandomFraction <= 1, "search.random_fraction", fmt.Sprint(s.RandomFraction), "must be between 0 and 1")
	require(s.Method != "grid" || s.GridPoints >= 1, "search.grid_points", s.GridPoints, "must be at least 1")
	s.validateStopping(require)
	s.validateRepeats(require)
	require(s.Method != "cma-es" && s.Method != "gp" || len(s.Maximize) <= 1, "search.method", s.Method,
		"needs one objective, as it learns from values and not from ranks: bohb, tpe, sobol, random and grid take several")
	require(len(s.Maximize) > 0, "objective", nil, "needs at least one objective")
	faults = append(faults, s.Space.Validate("space")...)
	if len(faults) == 0 {
		s.validateExpected(require)
	}
	return faults
}

// validateExpected checks that what is expected can be tried.
func (s Settings) validateExpected(require requirement) {
	expected := space.Configuration{}
	for _, p := range s.Space.Parameters {
		if p.Expect != nil {
			expected[p.Name] = p.Expect.Value
			require(s.Method != "grid", "space."+p.Name+".expect", p.Expect.Value.String(), "must be left out with a grid, whose points are given: use another search.method")
		}
	}
	if len(expected) == 0 {
		return
	}
	_, err := s.Space.Cube().Complete(expected, rand.New(rand.NewPCG(s.Seed, stream)))
	require(err == nil, "space", nil, "expects values that are forbidden together: change an expect, or the combination")
}

// requirement notes a fault unless it is ok.
type requirement func(ok bool, path string, value any, format string, args ...any)

// validateStopping says what is wrong with the rule and how it goes with the
// rest of the settings.
func (s Settings) validateStopping(require requirement) {
	e := s.EarlyStopping
	if e == nil {
		return
	}
	const path = "search.early_stopping"
	require(slices.Contains(stopping.Rules(), e.Rule), path+".rule", string(e.Rule), "must be median, percentile or halving")
	require(len(s.Maximize) == 1, path, nil, "needs one objective: what a trial has before it is measured is not ranked by several; leave it out")
	require(e.GraceEpochs >= 0, path+".grace_epochs", e.GraceEpochs, "must be at least 0")
	require(e.MinTrials >= 1, path+".min_trials", e.MinTrials, "must be at least 1")
	if e.Rule == stopping.Percentile {
		require(e.Percentile > 0 && e.Percentile < 100, path+".percentile", fmt.Sprint(e.Percentile), "must be above 0 and below 100: how many of a hundred go on")
	} else {
		require(e.Percentile == 0, path+".percentile", fmt.Sprint(e.Percentile), "belongs to rule: percentile; leave it out")
	}
	if e.Rule != stopping.Halving {
		require(e.EveryEpochs >= 1, path+".every_epochs", e.EveryEpochs, "must be at least 1")
		return
	}
	require(e.EveryEpochs == 0, path+".every_epochs", e.EveryEpochs, "must be left out with rule: halving, which compares at the epochs of the ladder's rungs")
	require(s.Promotion == budget.NoPromotion, path+".rule", string(e.Rule),
		"needs promotion: none, as trials go on by themselves until they are stopped; promotion: asynchronous is the same with trials that pause")
	require(len(s.Rungs) >= 2, path+".rule", string(e.Rule), "needs a ladder of two rungs or more to compare at: give budget.epochs a min below its max")
	for i := 1; i < len(s.Rungs); i++ {
		if s.Rungs[i].Budget.DataFraction != s.Rungs[0].Budget.DataFraction {
			require(false, path+".rule", string(e.Rule),
				"needs a ladder whose data fraction does not grow, as a trial trains on one share of the data from its first epoch: write budget.policy: epochs")
			return
		}
	}
}

func (s Settings) validateRepeats(require requirement) {
	if s.Repeats == nil {
		return
	}
	require(s.Repeats.Trials >= 1 && s.Repeats.Trials <= MaxRepeatedTrials, "search.repeats.trials", s.Repeats.Trials,
		"must be between 1 and %d", MaxRepeatedTrials)
	require(s.Repeats.Times >= 1 && s.Repeats.Times <= MaxRepeatedTimes, "search.repeats.times", s.Repeats.Times,
		"must be between 1 and %d", MaxRepeatedTimes)
}
