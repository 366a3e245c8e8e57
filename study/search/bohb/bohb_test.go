package bohb

import (
	"fmt"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/promotion"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// game is a search over floats without random draws once it has a model.
type game struct {
	*ladder.History
	promotion promotion.Promotion
	bohb      *BOHB
	random    *rand.Rand
}

func newGame(d, rungs int) *game {
	var budgets []budget.Rung
	for i := range rungs {
		budgets = append(budgets, budget.Rung{Index: i, Budget: budget.Budget{Epochs: i + 1, DataFraction: 1}})
	}
	var floats space.Space
	for i := range d {
		floats.Parameters = append(floats.Parameters,
			space.Parameter{Name: fmt.Sprintf("x%d", i), Kind: space.Training, Type: space.FloatType, Low: 0, High: 1})
	}
	return &game{
		History:   ladder.New(floats, budgets, 3, []bool{true}, false),
		promotion: promotion.New(promotion.Rules{Rungs: rungs, Eta: 3, Brackets: 1}),
		bohb:      New(floats, 5, 0, true),
		random:    rand.New(rand.NewPCG(5, 1)),
	}
}

// propose starts a trial with what the model proposes.
func (g *game) propose(t *testing.T) (number int, p ladder.Proposal) {
	t.Helper()
	p, ok := g.bohb.Propose(g.History, g.random)
	if !ok {
		t.Fatal("there is no configuration left")
	}
	return g.Create(p, g.promotion.Start(g.History)), p
}

// value gives the trial a value: minus its squared distance from 0.5.
func (g *game) value(number int) {
	value := 0.0
	for _, x := range g.Points[number] {
		value -= (x - 0.5) * (x - 0.5)
	}
	g.Measure(number, []trial.Float{trial.Float(value)}, 0)
}

// The model is that of the highest rung with d + 3 observations.
func TestModelMovesUpWithTheData(t *testing.T) {
	g := newGame(2, 3)
	models := map[int]int{}
	for range 150 {
		at := modelled(g.History)
		models[at]++
		s, up := g.promotion.Earned(g.History, false)
		number := s.Trial
		if up {
			g.Promote(number)
		} else {
			var p ladder.Proposal
			if number, p = g.propose(t); (p.Origin == propose.OriginModel) != (at >= 0) {
				t.Fatalf("with a model at rung %d trial %d is %s: %s", at, number, p.Origin, p.Reason)
			}
		}
		g.value(number)
		for i, r := range g.Rungs {
			if want := len(r.Entries) >= 5; want && modelled(g.History) < i {
				t.Fatalf("rung %d has %d observations, the model is at %d", i, len(r.Entries), modelled(g.History))
			}
		}
	}
	// Five trials are measured before there is a model at rung 0.
	if models[-1] < 5 || models[0] == 0 || models[1] == 0 || models[2] == 0 {
		t.Errorf("requests by the rung of the model: %v", models)
	}
}

// A failure is a bad observation, and never a good one.
func TestFailuresAreBadObservations(t *testing.T) {
	g := newGame(1, 1)
	for range 12 {
		number, p := g.propose(t)
		if x, _ := p.Configuration["x0"].Number(); x > 0.3 {
			g.value(number)
		} else {
			g.Fail(number)
		}
	}
	g.bohb.fit(g.History, modelled(g.History))
	m := &g.bohb.model
	if m.Ratio([]float64{0.5}) <= m.Ratio([]float64{0.1}) {
		t.Error("the model prefers where trials fail")
	}
	for _, r := range g.Rungs[0].Entries[:m.Good.N] {
		if r.Failed {
			t.Error("a failure is among the good observations")
		}
	}
}

// A pending trial makes its place less attractive to the next request, until
// it is measured.
func TestPendingTrialsRepel(t *testing.T) {
	g := newGame(1, 1)
	at := func(x float64) int {
		return g.Create(ladder.Proposal{Configuration: space.Configuration{"x0": space.Float(x)}, Origin: propose.OriginModel}, ladder.Slot{})
	}
	for range 30 {
		g.value(at(g.random.Float64()))
	}
	ratio := func() float64 {
		g.bohb.fit(g.History, 0)
		return g.bohb.model.Ratio([]float64{0.5}) - g.bohb.model.Ratio([]float64{0.9})
	}
	before := ratio()
	for range 5 {
		at(0.5)
	}
	if after := ratio(); after >= before-0.2 {
		t.Errorf("five pending trials at 0.5 change the ratio's logarithm from %.2f to %.2f only", before, after)
	}
}
