package search

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/prior"
	"github.com/tandem-tune/tandem/study/search/promotion"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/search/stopping"
)

// stream is the second word of the generator's seed: it keeps a search's draws
// apart from others that are seeded with the same number.
const stream = 0x7365617263680001

// Method is one search. The promotion says who goes up and where new trials
// start, the proposer with which configuration; when to wait and when to
// finish is decided here, so that neither of them can get it wrong.
//
// docs/search.md tells the rules, docs/decisions/0001 and 0003 why they are so.
type Method struct {
	settings  Settings
	promotion promotion.Promotion
	proposer  propose.Proposer
	source    *rand.PCG
	history   *ladder.History
	// queue has the enqueued configurations that no trial was created for yet,
	// complete, the first to go first.
	queue []queued
	prior prior.Prior
	// repeats are the trainings again of the best, once all else is done.
	repeats repeats
	// dry remembers that the proposer has nothing for the present state. It is
	// no part of it: a request that cannot be served leaves everything as it was.
	dry bool
}

func newMachine(settings Settings, p propose.Proposer) *Method {
	history := settings.newHistory()
	return &Method{
		settings:  settings,
		promotion: settings.newPromotion(),
		proposer:  p,
		source:    rand.NewPCG(settings.Seed, stream),
		history:   history,
		prior:     prior.New(history, settings.Space, nil),
		repeats:   repeats{settings: settings.Repeats},
	}
}

func (s Settings) newHistory() *ladder.History {
	return ladder.New(s.Space, s.Rungs, s.Eta, s.Maximize, s.EarlyStopping != nil && s.EarlyStopping.Rule == stopping.Halving)
}

func (s Settings) newPromotion() promotion.Promotion {
	return promotion.New(promotion.Rules{
		Promotion: s.Promotion, Rungs: len(s.Rungs), Eta: s.Eta, Brackets: s.Brackets,
	})
}

// Handle takes one event and returns what to do. An error means that the
// event cannot happen (an unknown trial, say); the state is then unchanged.
func (m *Method) Handle(e Event) ([]Action, error) {
	switch e.Kind {
	case Request:
		return []Action{m.answer()}, nil
	case Measured, Failed:
		return nil, m.observe(e)
	case Enqueued:
		return nil, m.enqueue(e)
	case Reported:
		return m.report(e)
	case Prior:
		return nil, m.learn(e.Prior)
	case Extended:
		return nil, m.extend(e.MaxTrials)
	}
	return nil, problem.New(problem.Invalid, "a search has no event of kind %q", e.Kind)
}

// observe takes the outcome of a trial in.
func (m *Method) observe(e Event) error {
	if err := m.possible(e); err != nil {
		return err
	}
	if again := m.at(e.Trial); again != nil {
		m.repeats.over(again, e)
		return nil
	}
	if e.Kind == Measured {
		m.history.Measure(e.Trial, slices.Clone(e.Values), e.Violation)
	} else {
		m.history.Fail(e.Trial)
	}
	m.dry = false
	return nil
}

// report takes an intermediate value in and stops the trial if the rule says so.
// A repeat is trained to its end, and nobody is compared with it.
func (m *Method) report(e Event) ([]Action, error) {
	rule := m.settings.EarlyStopping
	if rule == nil {
		return nil, problem.New(problem.Invalid, "the search takes no reports, as it has no early-stopping rule")
	}
	if err := m.possible(e); err != nil || m.at(e.Trial) != nil {
		return nil, err
	}
	if m.history.Trials[e.Trial].Known(ladder.Moment{Rung: e.Rung, Epoch: e.Epoch}) {
		return nil, nil
	}
	o := ladder.Observation{Rung: e.Rung, Epoch: e.Epoch, Values: slices.Clone(e.Values)}
	m.history.Report(e.Trial, o)
	m.dry = false
	reason, stop := stopping.Judge(*rule, m.history, e.Trial, o)
	if !stop {
		return nil, nil
	}
	m.history.Stop(e.Trial)
	return []Action{{Kind: Stop, Trial: e.Trial, Rung: e.Rung, Reason: reason}}, nil
}

// answer decides what a free worker does.
func (m *Method) answer() Action {
	if m.repeats.begun() {
		return m.finish()
	}
	if s, ok := m.promotion.Earned(m.history, false); ok {
		return m.promote(s)
	}
	if action, ok := m.creation(); ok {
		return action
	}
	if s, ok := m.promotion.Earned(m.history, true); ok {
		return m.promote(s)
	}
	if m.history.Out > 0 {
		return Action{Kind: Wait, Reason: "all trials are created; the next decision needs the outcome of one that is out"}
	}
	if s, ok := finalPromotion(m.history); ok {
		return m.promote(s)
	}
	return m.finish()
}

func (m *Method) promote(s promotion.Step) Action {
	m.history.Promote(s.Trial)
	m.dry = false
	return Action{Kind: Promote, Trial: s.Trial, Rung: m.history.Trials[s.Trial].Rung, Reason: s.Reason}
}

// creation starts a new trial, if the study allows one and the proposer has one.
func (m *Method) creation() (Action, bool) {
	if m.settings.MaxTrials > 0 && len(m.history.Trials) >= m.settings.MaxTrials {
		return Action{}, false
	}
	p, ok := m.dequeue()
	if !ok {
		p, ok = m.proposeNext()
	}
	if !ok {
		return Action{}, false
	}
	at := m.promotion.Start(m.history)
	number := m.history.Create(p, at)
	m.dry = false // one that was enqueued may be what the next proposal waited for
	return Action{
		Kind: Create, Trial: number, Rung: at.Rung,
		Configuration: p.Configuration, Origin: p.Origin, RetryOf: p.RetryOf, Reason: p.Reason,
	}, true
}

// random is the search's one source of chance.
func (m *Method) random() *rand.Rand { return rand.New(m.source) }

// footing is where the next trial starts, and whether the method proposes by what it
// learned. The others would no longer be what they are called.
func (m *Method) footing() prior.Footing {
	return prior.Footing{
		Models: !slices.Contains([]string{"random", "sobol", "grid"}, m.settings.Method),
		Cheap:  m.settings.Promotion == budget.NoPromotion || m.promotion.Start(m.history).Rung == 0,
	}
}

// proposeNext asks what is known from elsewhere, and then the proposer, unless it
// had nothing and nothing happened since, or nobody is wanted.
func (m *Method) proposeNext() (ladder.Proposal, bool) {
	if m.dry {
		return ladder.Proposal{}, false
	}
	before := *m.source
	if p, ok := m.prior.Propose(m.history, m.random(), m.footing()); ok {
		return p, true
	}
	p, ok := m.proposer.Propose(m.history, m.random())
	if !ok {
		*m.source, m.dry = before, true
	}
	p.Reason += m.prior.Remark(m.history)
	return p, ok
}

// finalPromotion ends a search that has nothing else to do with a winner that
// was trained on the full budget: as long as no trial has a value at the top
// rung, the best one of the highest rung that has a candidate goes up.
func finalPromotion(h *ladder.History) (promotion.Step, bool) {
	top := len(h.Rungs) - 1
	if h.Rungs[top].Usable() > 0 {
		return promotion.Step{}, false
	}
	for from := top - 1; from >= 0; from-- {
		r := &h.Rungs[from]
		if place := r.Best(len(r.Entries)); place >= 0 {
			reason := fmt.Sprintf("final promotion: the best left at rung %d, as no trial has a result at the top rung", from)
			return promotion.Step{Trial: r.Entries[place].Trial, Reason: reason}, true
		}
	}
	return promotion.Step{}, false
}
