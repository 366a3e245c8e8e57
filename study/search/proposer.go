package search

import (
	"math/rand/v2"

	"github.com/tandem-tune/tandem/study/space"
)

// proposer is what tells one method from another: which configuration is next?
//
// A proposal is a pure function of the history and the generator. A proposer
// may keep what it computed, but nothing that it could not compute again.
type proposer interface {
	// propose answers false when it has no configuration.
	propose(h *history, r *rand.Rand) (proposal, bool)
}

type proposal struct {
	configuration space.Configuration
	origin        string
	reason        string
	draw          *draw // what the proposer needs to see again, if anything
	// parts has origin and draw of each group, if there are several.
	parts map[string]shareOf
}

// The origins of configurations.
const (
	originRandom = "random"
	originModel  = "model"
	originGrid   = "grid"
	originSobol  = "sobol"
	// The groups of a space got their shares from different places.
	originGroups = "groups"
	// A user asked for the configuration.
	originEnqueued = "enqueued"
	// It comes from results that were measured elsewhere.
	originPrior = "prior"
	// It continues another trial of the population.
	originPopulation = "population"
	// The configuration of another trial, trained again.
	originRepeat = "repeat"
)

// redraws is how often a random draw that was tried before, or is close to a
// pending trial, is drawn again. A space of few configurations may be used up,
// so the next best is accepted then.
const redraws = 64

// drawRandom draws uniformly, avoiding configurations of earlier trials and
// near-duplicates of pending ones; where that fails, near-duplicates are better
// than repetitions. It answers false when the space forbids nearly everything.
func drawRandom(h *history, r *rand.Rand) (space.Configuration, bool) {
	var last, close space.Configuration
	for range redraws {
		point, err := h.cube.Draw(r)
		if err != nil {
			return nil, false
		}
		configuration, ok := fresh(h, point)
		if ok {
			return configuration, true
		}
		if last = configuration; !h.taken[configuration.Key()] {
			close = configuration
		}
	}
	if close != nil {
		return close, true
	}
	return last, true
}
