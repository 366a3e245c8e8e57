package propose

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/search/ladder"
)

// Random draws every configuration uniformly from the space.
type Random struct{}

// Propose implements [Proposer].
func (Random) Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool) {
	return Uniform(h, r, "drawn uniformly")
}

// Uniform proposes a configuration that is drawn uniformly, for the reason. It answers
// false when the space forbids nearly everything.
func Uniform(h *ladder.History, r *rand.Rand, reason string) (ladder.Proposal, bool) {
	configuration, ok := drawRandom(h, r)
	return ladder.Proposal{Configuration: configuration, Origin: OriginRandom, Reason: reason}, ok
}
