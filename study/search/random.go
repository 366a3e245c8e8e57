package search

import "math/rand/v2"

// random draws every configuration uniformly from the space.
type random struct{}

func newRandom(Settings) (proposer, error) { return random{}, nil }

func (random) propose(h *history, r *rand.Rand) (proposal, bool) {
	configuration, ok := drawRandom(h, r)
	return proposal{configuration: configuration, origin: originRandom, reason: "drawn uniformly"}, ok
}
