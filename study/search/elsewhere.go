package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/prior"
	"github.com/tandem-tune/tandem/study/space"
)

// MaxPrior is how many results of elsewhere a search takes.
const MaxPrior = 2000

// maxPriorFaults bounds the faults told at once.
const maxPriorFaults = 100

// learn takes results of elsewhere in, which come before the first trial.
func (m *Method) learn(observations []Observation) error {
	if len(m.history.Trials) > 0 {
		return problem.New(problem.Conflict, "results of elsewhere must be known before the first trial, and there are %d", len(m.history.Trials))
	}
	if n := len(m.prior.Observations) + len(observations); n > MaxPrior {
		return problem.New(problem.Invalid, "%d results of elsewhere are too many: at most %d", n, MaxPrior)
	}
	var faults []problem.Field
	kept := slices.Clone(m.prior.Observations)
	for i, o := range observations {
		part, fault := m.part(o)
		if fault.Message != "" && len(faults) < maxPriorFaults {
			fault.Path = fmt.Sprintf("prior[%d].%s", i, fault.Path)
			faults = append(faults, fault)
		}
		o.Params, o.Values = part, slices.Clone(o.Values)
		kept = append(kept, o)
	}
	if len(faults) > 0 {
		return problem.WithFields("the results of elsewhere do not fit the study", faults)
	}
	m.prior = prior.New(m.history, m.settings.Space, kept)
	m.prior.Suggest(m.history, rand.New(m.source))
	return nil
}

// Trust is what a search makes of a source of what was known before it began.
type Trust = prior.Trust

// Trusts says how far the method trusts what was known before it began.
func (m *Method) Trusts() []Trust { return m.prior.Trusts(m.history) }

// part is what the space can take of an observation, or why it cannot.
func (m *Method) part(o Observation) (space.Configuration, problem.Field) {
	if faults := m.settings.Space.CheckPart(o.Params); len(faults) > 0 {
		return nil, faults[0]
	}
	part, err := m.settings.Space.Part(o.Params)
	switch {
	case err != nil:
		return nil, problem.Field{Path: "params", Message: err.Error()}
	case len(part) == 0:
		return nil, problem.Field{Path: "params", Message: "has no parameter of the search space"}
	case len(o.Values) != len(m.settings.Maximize):
		return nil, problem.Field{Path: "values", Value: len(o.Values), Message: fmt.Sprintf("must have %d entries, one for each objective", len(m.settings.Maximize))}
	case !(o.Cost >= 0) || math.IsInf(o.Cost, 1):
		return nil, problem.Field{Path: "cost", Value: fmt.Sprint(o.Cost), Message: "must be a finite number, at least 0"}
	}
	return part, problem.Field{}
}
