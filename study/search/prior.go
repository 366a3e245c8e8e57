package search

import (
	"fmt"
	"math"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// MaxPrior is how many results of elsewhere a search takes.
const MaxPrior = 2000

// The constants of a prior, chosen by bench/search -warm; docs/search.md tells
// what they cost and bring.
const (
	// priorBest is how many of the best configurations of elsewhere are tried,
	// and untestedBest how many of them before anything is known of the source.
	priorBest, untestedBest = 3, 2
	// priorShare is the share of configurations drawn from the models of sources
	// that agree with our own results.
	priorShare = 0.75
	// priorTrial is how many own outcomes at one rung put a source to the test.
	priorTrial = 5
	// priorEnd is the number of own outcomes at one rung after which nothing of
	// elsewhere is used, as a multiple of what a model of our own needs.
	priorEnd = 30
	// priorAgreement is the rank correlation a source needs to be trusted, times
	// the root of the number of outcomes: about one in twenty that knows nothing
	// has it by chance. leastAgreement is what it needs in any case.
	priorAgreement, leastAgreement = 1.64, 0.3
)

// Observation is a result that was measured elsewhere: in an earlier study, or
// by another tool. It is never mixed with what this study measures.
type Observation struct {
	// Params are the values it was measured with; parts may be missing.
	Params space.Configuration `json:"params"`
	// Values has one entry for each objective of this study, in its direction.
	Values []trial.Float `json:"values"`
	// Cost is what it was trained with, in passes over the data; 0 is unknown,
	// and taken as more than any other.
	Cost float64 `json:"cost,omitempty"`
	// Source names where it comes from. Each source is ranked, modelled and
	// put to the test by itself.
	Source string `json:"source,omitempty"`
}

// suggestion is one of the best configurations of elsewhere, complete.
type suggestion struct {
	Configuration space.Configuration `json:"params"`
	Source        string              `json:"source"`
	Place         int                 `json:"place"` // in its source, from 1
}

// prior is what is known from elsewhere. Everything but the observations and
// the suggestions follows from them.
type prior struct {
	observations []Observation
	best         []suggestion
	sources      []*source
}

// maxPriorFaults bounds the faults told at once.
const maxPriorFaults = 100

// learn takes results of elsewhere in, which come before the first trial.
func (m *machine) learn(observations []Observation) error {
	if len(m.history.trials) > 0 {
		return problem.New(problem.Conflict, "results of elsewhere must be known before the first trial, and there are %d", len(m.history.trials))
	}
	if n := len(m.prior.observations) + len(observations); n > MaxPrior {
		return problem.New(problem.Invalid, "%d results of elsewhere are too many: at most %d", n, MaxPrior)
	}
	var faults []problem.Field
	kept := slices.Clone(m.prior.observations)
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
	m.prior = newPrior(m.history, kept)
	m.prior.suggest(m.history, rand.New(m.source))
	return nil
}

// part is what the space can take of an observation, or why it cannot.
func (m *machine) part(o Observation) (space.Configuration, problem.Field) {
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

// newPrior sorts the observations by source, in the order in which the sources
// first appear.
func newPrior(h *history, observations []Observation) prior {
	p := prior{observations: observations}
	index := map[string]*source{}
	for _, o := range observations {
		s, known := index[o.Source]
		if !known {
			s = &source{name: o.Source}
			index[o.Source] = s
			p.sources = append(p.sources, s)
		}
		s.ranking = append(s.ranking, elsewhereOf(h, o))
	}
	for _, s := range p.sources {
		s.learn(h)
	}
	return p
}

// suggest picks the best configurations, one of each source in turn. What they
// lack is drawn.
func (p *prior) suggest(h *history, r *rand.Rand) {
	p.best = nil
	known := map[string]bool{}
	for place := 0; len(p.best) < priorBest; place++ {
		left := false
		for _, s := range p.sources {
			if place >= len(s.ranking) || math.IsInf(s.ranking[place].score, -1) {
				continue
			}
			left = true
			complete, err := h.cube.Complete(s.ranking[place].params, r)
			if err != nil || known[complete.Key()] || len(p.best) == priorBest {
				continue // a forbidden combination, or one we have
			}
			known[complete.Key()] = true
			p.best = append(p.best, suggestion{complete, s.name, place + 1})
		}
		if !left {
			return
		}
	}
}

// footing is where a proposal will be used.
type footing struct {
	// models says that the method proposes by what it learned, and so may begin
	// with what was learned elsewhere.
	models bool
	// cheap says that the trial starts where trials of this study cost least.
	// What is not known to hold here is tried only there.
	cheap bool
}

// propose gives the best configurations of elsewhere first, and then, as long
// as the sources are trusted, draws from their models. It answers false where
// the method shall do as it does without a prior.
func (p *prior) propose(h *history, r *rand.Rand, where footing) (proposal, bool) {
	if s, ok := p.next(h, where); ok {
		reason := fmt.Sprintf("number %d of the results of %s: what was good elsewhere may be good here", s.Place, s.Source)
		return proposal{configuration: s.Configuration, origin: originPrior, reason: reason}, true
	}
	if !where.models {
		return proposal{}, false
	}
	s, weight := p.choose(h, r)
	if s == nil || r.Float64() >= weight {
		return proposal{}, false
	}
	configuration, ok := s.draw(h, r)
	if !ok {
		return proposal{}, false
	}
	return proposal{configuration: configuration, origin: originPrior, reason: s.reason(h)}, true
}

// next is the next of the best configurations of elsewhere to try. As long as
// its source is not known to agree with us, it has to be among the first few,
// to start where trials are cheapest, and to leave every other trial to the
// method: so little is lost if it is bad.
func (p *prior) next(h *history, where footing) (suggestion, bool) {
	for i, one := range p.best {
		if h.taken[one.Configuration.Key()] {
			continue
		}
		tested, passes := p.source(one.Source).tested(h)
		if passes || !tested && i < untestedBest && where.cheap && len(h.trials) >= 2*i {
			return one, true
		}
	}
	return suggestion{}, false
}

// source is the one with the name, or nil.
func (p *prior) source(name string) *source {
	for _, s := range p.sources {
		if s.name == name {
			return s
		}
	}
	return nil
}

// remark says of sources that have failed the test that they are not used.
func (p *prior) remark(h *history) string {
	text := ""
	for _, s := range p.sources {
		if tested, passes := s.tested(h); tested && !passes && !s.ended(h) {
			text += fmt.Sprintf("; the results of %s are not used, as they do not agree with ours (rank correlation %.2f)", s.name, s.agreement(h))
		}
	}
	return text
}

// choose draws one of the trusted sources, by their weights, and says how
// large a share of the configurations they may have together.
func (p *prior) choose(h *history, r *rand.Rand) (*source, float64) {
	largest, total := 0.0, 0.0
	weights := make([]float64, len(p.sources))
	for i, s := range p.sources {
		weights[i] = s.weight(h)
		largest, total = max(largest, weights[i]), total+weights[i]
	}
	if total == 0 {
		return nil, 0
	}
	left := r.Float64() * total
	for i, s := range p.sources {
		if left -= weights[i]; left < 0 && weights[i] > 0 {
			return s, largest
		}
	}
	return nil, 0
}
