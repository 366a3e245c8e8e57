// Package prior is what a search knows from elsewhere: results of earlier studies or other
// tools, each source put to the test against the search's own results.
package prior

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// The constants of a prior, chosen by bench/search -warm; docs/search.md tells
// what they cost and bring.
const (
	// priorBest is how many of the best configurations of elsewhere are tried,
	// and untestedBest how many of them before anything is known of the source.
	priorBest, untestedBest = 3, 2
	// untestedDraws is how many trials come from what is expected before it is tested.
	untestedDraws = 5
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

// Suggestion is one of the best configurations of elsewhere, complete.
type Suggestion struct {
	Configuration space.Configuration `json:"params"`
	Source        string              `json:"source"`
	Place         int                 `json:"place"` // in its source, from 1
}

// Prior is what is known from elsewhere. Everything but the observations and
// the suggestions follows from them.
type Prior struct {
	Observations []Observation
	Best         []Suggestion
	sources      []*source
}

// New sorts the observations by source, in the order in which the sources
// first appear.
func New(h *ladder.History, s space.Space, observations []Observation) Prior {
	p := Prior{Observations: observations}
	index := map[string]*source{}
	for _, o := range observations {
		s, known := index[o.Source]
		if !known {
			s = &source{name: o.Source, origin: propose.OriginPrior}
			index[o.Source] = s
			p.sources = append(p.sources, s)
		}
		s.ranking = append(s.ranking, elsewhereOf(h, o))
	}
	for _, s := range p.sources {
		s.learn(h)
	}
	if expected := newExpected(h, s); expected != nil {
		p.sources = append(p.sources, expected)
	}
	return p
}

// Suggest picks the best configurations, one of each source in turn. What they
// lack is drawn.
func (p *Prior) Suggest(h *ladder.History, r *rand.Rand) {
	p.Best = nil
	known := map[string]bool{}
	for place := 0; len(p.Best) < priorBest; place++ {
		left := false
		for _, s := range p.sources {
			if place >= len(s.ranking) || math.IsInf(s.ranking[place].score, -1) {
				continue
			}
			left = true
			complete, err := h.Cube.Complete(s.ranking[place].params, r)
			if err != nil || known[complete.Key()] || len(p.Best) == priorBest {
				continue // a forbidden combination, or one we have
			}
			known[complete.Key()] = true
			p.Best = append(p.Best, Suggestion{complete, s.name, place + 1})
		}
		if !left {
			return
		}
	}
}

// Footing is where a proposal will be used.
type Footing struct {
	// Models says that the method proposes by what it learned, and so may begin
	// with what was learned elsewhere.
	Models bool
	// Cheap says that the trial starts where trials of this study cost least.
	// What is not known to hold here is tried only there.
	Cheap bool
}

// Propose gives the best configurations of elsewhere first, and then, as long
// as the sources are trusted, draws from their models. It answers false where
// the method shall do as it does without a prior.
func (p *Prior) Propose(h *ladder.History, r *rand.Rand, where Footing) (ladder.Proposal, bool) {
	if one, ok := p.begin(h, r, where); ok {
		return one, true
	}
	if s, ok := p.next(h, where); ok {
		reason := fmt.Sprintf("number %d of the results of %s: what was good elsewhere may be good here", s.Place, s.Source)
		return ladder.Proposal{Configuration: s.Configuration, Origin: propose.OriginPrior, Reason: reason}, true
	}
	if !where.Models {
		return ladder.Proposal{}, false
	}
	s, weight := p.choose(h, r)
	if s == nil || r.Float64() >= weight {
		return ladder.Proposal{}, false
	}
	configuration, ok := s.draw(h, r)
	if !ok {
		return ladder.Proposal{}, false
	}
	return ladder.Proposal{Configuration: configuration, Origin: s.origin, Reason: s.reason(h)}, true
}

// next is the next of the best configurations of elsewhere to try. As long as
// its source is not known to agree with us, it has to be among the first few,
// to start where trials are cheapest, and to leave every other trial to the
// method: so little is lost if it is bad.
func (p *Prior) next(h *ladder.History, where Footing) (Suggestion, bool) {
	for i, one := range p.Best {
		if h.Taken[one.Configuration.Key()] {
			continue
		}
		tested, passes := p.Source(one.Source).tested(h)
		if passes || !tested && i < untestedBest && where.Cheap && len(h.Trials) >= 2*i {
			return one, true
		}
	}
	return Suggestion{}, false
}

// Source is the one with the name, or nil.
func (p *Prior) Source(name string) *source {
	for _, s := range p.sources {
		if s.name == name {
			return s
		}
	}
	return nil
}

// Remark says of sources that have failed the test that they are not used.
func (p *Prior) Remark(h *ladder.History) string {
	text := ""
	for _, s := range p.sources {
		if tested, passes := s.tested(h); tested && !passes && !s.ended(h) {
			what := "the results of " + s.name + " are not used, as they do not agree"
			if s.centre != nil {
				what = s.name + " is not used, as it does not agree"
			}
			text += fmt.Sprintf("; %s with ours (rank correlation %.2f)", what, s.agreement(h))
		}
	}
	return text
}

// choose draws one of the trusted sources, by their weights, and says how
// large a share of the configurations they may have together.
func (p *Prior) choose(h *ladder.History, r *rand.Rand) (*source, float64) {
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
