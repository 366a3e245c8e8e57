package search

import (
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/bohb"
	"github.com/tandem-tune/tandem/study/search/cmaes"
	"github.com/tandem-tune/tandem/study/search/gp"
	"github.com/tandem-tune/tandem/study/search/grid"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/search/sobol"
	"github.com/tandem-tune/tandem/study/search/tpe"
)

// methods is the registry: how each search proposes configurations. All of
// them share the ladder, so a new search is one proposer and one line here.
func methods() map[string]func(Settings) (propose.Proposer, error) {
	return map[string]func(Settings) (propose.Proposer, error){
		"bohb": func(s Settings) (propose.Proposer, error) {
			return bohb.New(s.Space, s.Seed, s.RandomFraction, s.Learning == LowerRungs), nil
		},
		"cma-es": func(s Settings) (propose.Proposer, error) { return cmaes.New(s.Space, s.Seed, s.Restarts) },
		"random": func(Settings) (propose.Proposer, error) { return propose.Random{}, nil },
		"grid":   func(s Settings) (propose.Proposer, error) { return grid.New(s.Space, s.Seed, s.GridPoints) },
		"sobol":  func(s Settings) (propose.Proposer, error) { return sobol.New(s.Space, s.Seed) },
		"tpe":    func(s Settings) (propose.Proposer, error) { return tpe.New(s.Space, s.Learning == LowerRungs), nil },
		"gp":     func(s Settings) (propose.Proposer, error) { return gp.New(s.Space, s.Seed), nil },
	}
}

// Names returns the names of all methods, sorted.
func Names() []string { return slices.Sorted(maps.Keys(methods())) }

// New returns the method the settings name, before its first event. The error
// is [problem.Invalid] and names every fault of the settings; paths are those
// of the study file ("search.method", "space.learning_rate.low").
func New(settings Settings) (*Method, error) {
	if faults := settings.validate(); len(faults) > 0 {
		return nil, problem.WithFields("the search settings are wrong", faults)
	}
	settings.Promotion, settings.Restarts = settings.Promotion.OrDefault(), settings.Restarts.OrDefault()
	proposer, err := methods()[settings.Method](settings)
	if err != nil {
		return nil, err
	}
	return newMachine(settings, proposer), nil
}
