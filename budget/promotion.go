package budget

import "slices"

// Promotion names how trials go up the ladder.
type Promotion string

// The promotions. The zero value means [Asynchronous].
const (
	// Asynchronous: a trial goes up as soon as it is among the best of its rung
	// (ASHA; Li et al. 2020).
	Asynchronous Promotion = "asynchronous"
	// Synchronous: the best of a bracket's rung go up when all of the rung are
	// measured (Hyperband; Li et al. 2018).
	Synchronous Promotion = "synchronous"
	// NoPromotion: every trial is trained at the top rung from the start.
	NoPromotion Promotion = "none"
)

// Promotions lists all promotions, the default first.
func Promotions() []Promotion { return []Promotion{Asynchronous, Synchronous, NoPromotion} }

// OrDefault returns the promotion, [Asynchronous] if it is not set.
func (p Promotion) OrDefault() Promotion {
	if p == "" {
		return Asynchronous
	}
	return p
}

// Known reports whether there is such a promotion.
func (p Promotion) Known() bool { return slices.Contains(Promotions(), p) }
