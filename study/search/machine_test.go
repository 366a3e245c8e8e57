package search

import (
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// moody has configurations only at times.
type moody struct{ dry bool }

func (m *moody) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	if m.dry {
		return ladder.Proposal{}, false
	}
	return propose.Uniform(h, r, "in the mood")
}

// A bracket that went on without its last trials is not joined by later ones:
// they would be compared with trials that had gone up before they came.
func TestABracketThatWentOnIsNotJoined(t *testing.T) {
	settings := Settings{
		Method: "random", Seed: 1, Eta: 2, Maximize: []bool{true}, Promotion: budget.Synchronous,
		Space: space.Space{Parameters: []space.Parameter{{Name: "x", Kind: space.Training, Type: space.FloatType, Low: 0, High: 1}}},
		Rungs: make([]budget.Rung, 3), // brackets of 4, 3 and 3
	}
	p := &moody{}
	m := newMachine(settings, p)
	request := func(kind ActionKind, number, rung int) {
		t.Helper()
		actions, err := m.Handle(Event{Kind: Request})
		if err != nil || actions[0].Kind != kind || actions[0].Trial != number || actions[0].Rung != rung {
			t.Fatalf("got %+v, %v; want %s %d at %d", actions, err, kind, number, rung)
		}
	}
	measured := func(number, rung int) {
		t.Helper()
		if _, err := m.Handle(Event{Kind: Measured, Trial: number, Rung: rung, Values: []trial.Float{trial.Float(number)}}); err != nil {
			t.Fatal(err)
		}
	}
	request(Create, 0, 0)
	request(Create, 1, 0)
	measured(0, 0)
	measured(1, 0)
	p.dry = true
	request(Promote, 1, 1)
	p.dry = false
	measured(1, 1)
	request(Create, 2, 1)
	request(Create, 3, 1)
}
