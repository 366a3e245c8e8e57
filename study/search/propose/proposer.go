// Package propose is what search methods implement, and what they share: uniform draws,
// and what counts as tried before.
package propose

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/search/ladder"
	"github.com/tandem-tune/tandem/study/space"
)

// Proposer is what tells one method from another: which configuration is next?
//
// A proposal is a pure function of the history and the generator. A proposer
// may keep what it computed, but nothing that it could not compute again.
type Proposer interface {
	// Propose answers false when it has no configuration.
	Propose(h *ladder.History, r *rand.Rand) (ladder.Proposal, bool)
}

// The origins of configurations.
const (
	OriginRandom = "random"
	OriginModel  = "model"
	OriginGrid   = "grid"
	OriginSobol  = "sobol"
	// A user asked for the configuration.
	OriginEnqueued = "enqueued"
	// It comes from results that were measured elsewhere.
	OriginPrior = "prior"
	// It is, or lies around, what a user expects to be good.
	OriginExpected = "expected"
	// The configuration of another trial, trained again.
	OriginRepeat = "repeat"
)

// Redraws is how often a random draw that was tried before, or is close to a
// pending trial, is drawn again. A space of few configurations may be used up,
// so the next best is accepted then.
const Redraws = 64

// drawRandom draws uniformly, avoiding configurations of earlier trials and
// near-duplicates of pending ones; where that fails, near-duplicates are better
// than repetitions. It answers false when the space forbids nearly everything.
func drawRandom(h *ladder.History, r *rand.Rand) (space.Configuration, bool) {
	var last, close space.Configuration
	for range Redraws {
		point, err := h.Cube.Draw(r)
		if err != nil {
			return nil, false
		}
		configuration, ok := Fresh(h, point)
		if ok {
			return configuration, true
		}
		if last = configuration; !h.Taken[configuration.Key()] {
			close = configuration
		}
	}
	if close != nil {
		return close, true
	}
	return last, true
}
