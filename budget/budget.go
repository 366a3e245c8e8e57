// Package budget answers one question: how much may a trial spend now?
//
// A [Budget] has two axes, epochs and the share of the training data, and a
// [Settings] turns the user's minimum and maximum of each into a ladder of
// rungs. Three policies are one mechanism: "multi" grows both axes together
// (EdgeTune; Rocha's thesis, section 7.4.3, algorithm 6), "epochs" pins the
// data fraction to its maximum, "dataset" pins the epochs a rung trains. Under
// "seconds" and "joules" a rung is an amount of training time or energy instead.
//
// The package is pure arithmetic: it knows neither trials nor searches, and
// equal settings give equal ladders.
package budget

// Budget is what a trial may have spent when it reaches a rung.
type Budget struct {
	// Epochs is the number of passes in total, counted from the trial's first.
	Epochs int `json:"epochs"`
	// DataFraction is the share of the training data each pass uses, in (0, 1].
	DataFraction float64 `json:"data_fraction"`
	// Seconds, if set, is the training time in total: the budget is spent at the
	// first epoch whose end it has come to by then. Epochs only bounds it above.
	Seconds float64 `json:"seconds,omitempty"`
	// Joules, if set, is the same for the energy of the training.
	Joules float64 `json:"joules,omitempty"`
}

// Spent is what a trial has spent since its first epoch. An epoch that was
// trained again after a loss counts once.
type Spent struct {
	// Epoch is the epoch that has just ended.
	Epoch           int
	Seconds, Joules float64
}

// Measured reports whether the budget is an amount of time or energy, so that
// nobody knows beforehand at which epoch it is reached.
func (b Budget) Measured() bool { return b.Seconds > 0 || b.Joules > 0 }

// Reached reports whether the budget is spent.
func (b Budget) Reached(s Spent) bool {
	return s.Epoch >= b.Epochs || b.Seconds > 0 && s.Seconds >= b.Seconds || b.Joules > 0 && s.Joules >= b.Joules
}

// Rung is one step of the ladder.
type Rung struct {
	// Index counts from 0, the cheapest.
	Index int `json:"index"`
	// Budget is what a trial has spent when it is measured at this rung.
	Budget Budget `json:"budget"`
	// FromScratch says that a trial promoted to this rung starts again at epoch
	// 1 instead of continuing its checkpoint, because the rung has no epoch more
	// than the one below and only the data grows (thesis 7.4.3 trains every
	// iteration afresh; we continue wherever the epochs grow).
	FromScratch bool `json:"from_scratch"`
}

// Policy names which axes grow from rung to rung.
type Policy string

// The policies of thesis section 7.4.3.
const (
	Multi   Policy = "multi"   // epochs and data fraction grow together
	Epochs  Policy = "epochs"  // epochs grow, all of max data fraction from the start
	Dataset Policy = "dataset" // the data fraction grows, epochs stay at max
	Seconds Policy = "seconds" // the training time grows, all of max data fraction from the start
	Joules  Policy = "joules"  // the training's energy grows, likewise
)

// Measured reports whether rungs are amounts of time or energy.
func (p Policy) Measured() bool { return p == Seconds || p == Joules }

// Growth names how an axis grows from rung to rung.
type Growth string

// The growths.
const (
	// Geometric multiplies by eta, so that both axes reach their maximum at the
	// top rung (successive halving, Jamieson and Talwalkar 2016).
	Geometric Growth = "geometric"
	// Linear is min(max, iteration × min) on each axis by itself (algorithm 6).
	Linear Growth = "linear"
)

// Rounding names how the number of geometric steps is rounded, which is a
// logarithm.
type Rounding string

// The roundings. The zero value means [Down]: studies that were stored before
// there were two lack it, and keep their ladders.
const (
	// Nearest makes the factor from rung to rung as near to eta as can be: between
	// its root and its power of 3/2.
	Nearest Rounding = "nearest"
	// Down makes the factor eta at least, and at most its square.
	Down Rounding = "down"
)

// EpochRange bounds the epochs axis.
type EpochRange struct {
	Min int `json:"min"`
	Max int `json:"max"`
}

// FractionRange bounds the data axis, within (0, 1].
type FractionRange struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// AmountRange bounds an amount of seconds or joules; positive numbers.
type AmountRange struct {
	Min float64 `json:"min"`
	Max float64 `json:"max"`
}

// Settings is the budget section of a study.
type Settings struct {
	Policy       Policy        `json:"policy"`
	Growth       Growth        `json:"growth"`
	Rounding     Rounding      `json:"rounding,omitempty"`
	Epochs       EpochRange    `json:"epochs"`
	DataFraction FractionRange `json:"data_fraction"`
	// Seconds and Joules belong to the policy of their name.
	Seconds AmountRange `json:"seconds,omitzero"`
	Joules  AmountRange `json:"joules,omitzero"`
	// Eta is the reduction factor: about one trial in Eta goes up a rung.
	Eta int `json:"eta"`
}
