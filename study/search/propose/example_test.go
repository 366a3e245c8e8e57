package propose_test

import (
	"fmt"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/search/propose"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

// nearBest proposes configurations near the best one so far.
type nearBest struct{}

func (nearBest) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	top := &h.Rungs[len(h.Rungs)-1]
	if top.Usable() == 0 {
		return propose.Uniform(h, r, "drawn uniformly, as nothing was measured yet")
	}
	best := top.Entries[0].Trial
	for range propose.Redraws {
		point := make([]float64, len(h.Points[best]))
		for i, u := range h.Points[best] {
			point[i] = min(max(u+0.1*r.NormFloat64(), 0), 1)
		}
		h.Cube.Mask(point)
		if h.Cube.Forbids(point) {
			continue
		}
		if configuration, fresh := propose.Fresh(h, point); fresh {
			reason := fmt.Sprintf("near trial %d, the best so far", best)
			return ladder.Proposal{Configuration: configuration, Origin: propose.OriginModel, Reason: reason}, true
		}
	}
	return propose.Uniform(h, r, "drawn uniformly: all near the best was tried before")
}

// A search method proposes configurations from a history. This one stays near the best
// trial; it finds the middle of the range.
func ExampleProposer() {
	rate := space.Space{Parameters: []space.Parameter{{Name: "rate", Kind: space.Training, Type: space.FloatType, Low: 0, High: 1}}}
	h := ladder.New(rate, []budget.Rung{{Budget: budget.Budget{Epochs: 1, DataFraction: 1}}}, 2, []bool{true}, false)
	var method propose.Proposer = nearBest{}
	r := rand.New(rand.NewPCG(1, 1))
	for range 30 {
		p, _ := method.Propose(h, r)
		number := h.Create(p, ladder.Slot{})
		x := h.Points[number][0]
		h.Measure(number, []trial.Float{trial.Float(-(x - 0.5) * (x - 0.5))}, 0)
	}
	best := h.Rungs[0].Entries[0].Trial
	fmt.Printf("best rate: %.2f\n", h.Points[best][0])
	// Output: best rate: 0.50
}
