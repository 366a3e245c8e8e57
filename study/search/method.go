package search

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
)

// methods is the registry: how each search proposes configurations. All of
// them share the ladder, so a new search is one proposer and one line here.
func methods() map[string]func(Settings) (proposer, error) {
	return map[string]func(Settings) (proposer, error){
		"bohb":   newBOHB,
		"cma-es": newCMAES,
		"random": newRandom,
		"grid":   newGrid,
		"sobol":  newSobol,
		"tpe":    newTPE,
		"gp":     newGP,
	}
}

// Names returns the names of all methods, sorted.
func Names() []string { return slices.Sorted(maps.Keys(methods())) }

// New returns the method the settings name, before its first event. The error
// is [problem.Invalid] and names every fault of the settings; paths are those
// of the study file ("search.method", "space.learning_rate.low").
func New(settings Settings) (Method, error) {
	if faults := settings.validate(); len(faults) > 0 {
		return nil, problem.WithFields("the search settings are wrong", faults)
	}
	settings.Promotion, settings.Restarts = settings.Promotion.OrDefault(), settings.Restarts.OrDefault()
	proposer, err := newProposer(settings)
	if err != nil {
		return nil, err
	}
	return newMachine(settings, proposer), nil
}

// ofOneValue are the methods that learn from the value of one objective.
func ofOneValue() []string { return []string{"cma-es", "gp"} }

func (s Settings) requireTakesSeveral(require requirement, path, method string) {
	require(!slices.Contains(ofOneValue(), method) || len(s.Maximize) <= 1, path, method,
		"needs one objective, as it learns from values and not from ranks: bohb, tpe, sobol, random and grid take several")
}

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
	require(s.Promotion.OrDefault().Known(), "search.promotion", string(s.Promotion), "must be asynchronous, synchronous, none or population")
	require(s.Restarts.OrDefault().Known(), "search.restarts", string(s.Restarts), "must be ipop, bipop or none")
	s.validatePopulation(require)
	require(s.Promotion != budget.NoPromotion || s.Brackets <= 0, "search.brackets", s.Brackets,
		"must be left out with promotion: none, as every trial then starts at the top rung")
	require(!s.Widen || s.Promotion.OrDefault() == budget.Asynchronous, "search.widen", s.Widen,
		"must be left out with promotion: %s: only asynchronous promotion can send up more than its share", s.Promotion)
	require(len(s.Rungs) == 0 || !s.Rungs[0].Budget.Measured() || s.EarlyStopping == nil || s.EarlyStopping.Rule != HalvingRule,
		"search.early_stopping", "halving", "cannot be halving with a budget in seconds or joules, as its rungs are no epochs: use median or percentile")
	require(len(s.Rungs) > 0 && len(s.Rungs) <= maxRungs, "budget", len(s.Rungs), "must give a ladder of 1 to %d rungs", maxRungs)
	for i, rung := range s.Rungs {
		require(rung.Index == i, "budget", rung.Index, "must count its rungs from 0 without gaps: rung %d", i)
	}
	require(s.Eta >= 2 && s.Eta <= maxEta, "budget.eta", s.Eta, "must be between 2 and %d", maxEta)
	require(s.Brackets >= 0, "search.brackets", s.Brackets, "must be at least 0 (0 means all)")
	require(s.MaxTrials >= 0, "stop.trials", s.MaxTrials, "must be at least 0 (0 means no bound)")
	require(s.RandomFraction >= 0 && s.RandomFraction <= 1, "search.random_fraction", fmt.Sprint(s.RandomFraction), "must be between 0 and 1")
	require(!s.uses("grid") || s.GridPoints >= 1, "search.grid_points", s.GridPoints, "must be at least 1")
	s.validateStopping(require)
	s.validateRepeats(require)
	s.validateGroups(require)
	require(!s.Widen || len(s.Maximize) <= 1, "search.widen", s.Widen, "must be left out with several objectives, as only one can be correlated")
	s.requireTakesSeveral(require, "search.method", s.Method)
	require(len(s.Maximize) > 0, "objective", nil, "needs at least one objective")
	return append(faults, s.Space.Validate("space")...)
}
