package search

import (
	"fmt"
	"math/rand/v2"
	"slices"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study/space"
)

// stream is the second word of the generator's seed: it keeps a search's draws
// apart from others that are seeded with the same number.
const stream = 0x7365617263680001

// machine is every search. The promotion says who goes up and where new trials
// start, the proposer with which configuration; when to wait and when to
// finish is decided here, so that neither of them can get it wrong.
//
// docs/search.md tells the rules, docs/decisions/0001 and 0003 why they are so.
type machine struct {
	settings  Settings
	promotion promotion
	proposer  proposer
	source    *rand.PCG
	history   *history
	// queue has the enqueued configurations that no trial was created for yet,
	// complete, the first to go first.
	queue []space.Configuration
	prior prior
	// repeats are the trainings again of the best, once all else is done.
	repeats repeats
	// dry remembers that the proposer has nothing for the present state. It is
	// no part of it: a request that cannot be served leaves everything as it was.
	dry bool
}

func newMachine(settings Settings, p proposer) *machine {
	return &machine{
		settings:  settings,
		promotion: promotionOf(settings),
		proposer:  p,
		source:    rand.NewPCG(settings.Seed, stream),
		history:   newHistory(settings),
		repeats:   repeats{settings: settings.Repeats},
	}
}

// Handle implements [Method].
func (m *machine) Handle(e Event) ([]Action, error) {
	switch e.Kind {
	case Request:
		return []Action{m.answer()}, nil
	case Measured, Failed:
		return nil, m.observe(e)
	case Enqueued:
		return nil, m.enqueue(e.Configuration)
	case Reported:
		return m.report(e)
	case Prior:
		return nil, m.learn(e.Prior)
	}
	return nil, problem.New(problem.Invalid, "a search has no event of kind %q", e.Kind)
}

// observe takes the outcome of a trial in.
func (m *machine) observe(e Event) error {
	if err := m.possible(e); err != nil {
		return err
	}
	if again := m.at(e.Trial); again != nil {
		m.repeats.over(again, e.Kind)
		return nil
	}
	if e.Kind == Measured {
		m.history.measure(e.Trial, slices.Clone(e.Values), e.Violation)
	} else {
		m.history.fail(e.Trial)
	}
	m.dry = false
	return nil
}

// report takes an intermediate value in and stops the trial if the rule says so.
// A repeat is trained to its end, and nobody is compared with it.
func (m *machine) report(e Event) ([]Action, error) {
	rule := m.settings.EarlyStopping
	if rule == nil {
		return nil, problem.New(problem.Invalid, "the search takes no reports, as it has no early-stopping rule")
	}
	if err := m.possible(e); err != nil || m.at(e.Trial) != nil {
		return nil, err
	}
	if m.history.trials[e.Trial].known(moment{e.Rung, e.Epoch}) {
		return nil, nil
	}
	o := observation{Rung: e.Rung, Epoch: e.Epoch, Values: slices.Clone(e.Values)}
	m.history.report(e.Trial, o)
	m.dry = false
	reason, stop := rule.judge(m.history, e.Trial, o)
	if !stop {
		return nil, nil
	}
	m.history.stop(e.Trial)
	return []Action{{Kind: Stop, Trial: e.Trial, Rung: e.Rung, Reason: reason}}, nil
}

// answer decides what a free worker does.
func (m *machine) answer() Action {
	if m.repeats.begun() {
		return m.finish()
	}
	bound := m.settings.MaxTrials
	o := outlook{room: bound == 0 || len(m.history.trials)+len(m.queue) < bound}
	if s, ok := m.promotion.earned(m.history, o); ok {
		return m.take(s)
	}
	if action, ok := m.creation(); ok {
		return action
	}
	o.last = true
	if s, ok := m.promotion.earned(m.history, o); ok {
		return m.take(s)
	}
	if m.history.out > 0 && m.promotion.full(m.history) {
		return Action{Kind: Wait, Reason: "the population is complete; the next decision needs the outcome of one that is out"}
	}
	if m.history.out > 0 {
		return Action{Kind: Wait, Reason: "all trials are created; the next decision needs the outcome of one that is out"}
	}
	if s, ok := m.history.finalPromotion(); ok {
		return m.promote(s)
	}
	return m.finish()
}

// take takes a trial one rung up, or a child in its place.
func (m *machine) take(s step) Action {
	if s.parents > 0 {
		return m.replace(s)
	}
	return m.promote(s)
}

func (m *machine) promote(s step) Action {
	m.history.promote(s.trial)
	m.dry = false
	return Action{Kind: Promote, Trial: s.trial, Rung: m.history.trials[s.trial].Rung, Reason: s.reason}
}

// creation starts a new trial, if the study allows one and the proposer has one.
func (m *machine) creation() (Action, bool) {
	if m.settings.MaxTrials > 0 && len(m.history.trials) >= m.settings.MaxTrials {
		return Action{}, false
	}
	p, ok := m.dequeue()
	if !ok {
		p, ok = m.propose()
	}
	if !ok {
		return Action{}, false
	}
	at := m.promotion.start(m.history)
	number := m.history.create(p, at)
	m.dry = false // one that was enqueued may be what the next proposal waited for
	return Action{
		Kind: Create, Trial: number, Rung: at.rung,
		Configuration: p.configuration, Origin: p.origin, Reason: p.reason,
	}, true
}

// random is the search's one source of chance.
func (m *machine) random() *rand.Rand { return rand.New(m.source) }

// footing is where the next trial starts, and whether the method, and that of
// every group, proposes by what it learned. The others would no longer be what
// they are called.
func (m *machine) footing() footing {
	fixed := []string{"random", "sobol", "grid"}
	models := !slices.Contains(fixed, m.settings.Method)
	for _, group := range m.settings.Groups {
		models = models && !slices.Contains(fixed, group.Method)
	}
	return footing{
		models: models,
		cheap:  m.settings.Promotion == budget.NoPromotion || m.promotion.start(m.history).rung == 0,
	}
}

// propose asks what is known from elsewhere, and then the proposer, unless it
// had nothing and nothing happened since, or nobody is wanted.
func (m *machine) propose() (proposal, bool) {
	if m.dry || m.promotion.full(m.history) {
		return proposal{}, false
	}
	before := *m.source
	if p, ok := m.prior.propose(m.history, m.random(), m.footing()); ok {
		return p, true
	}
	p, ok := m.proposer.propose(m.history, m.random())
	if !ok {
		*m.source, m.dry = before, true
	}
	p.reason += m.prior.remark(m.history)
	return p, ok
}

// finalPromotion ends a search that has nothing else to do with a winner that
// was trained on the full budget: as long as no trial has a value at the top
// rung, the best one of the highest rung that has a candidate goes up.
func (h *history) finalPromotion() (step, bool) {
	top := len(h.rungs) - 1
	if h.rungs[top].usable() > 0 {
		return step{}, false
	}
	for from := top - 1; from >= 0; from-- {
		r := &h.rungs[from]
		if place := r.best(len(r.entries)); place >= 0 {
			reason := fmt.Sprintf("final promotion: the best left at rung %d, as no trial has a result at the top rung", from)
			return step{trial: r.entries[place].trial, reason: reason}, true
		}
	}
	return step{}, false
}
