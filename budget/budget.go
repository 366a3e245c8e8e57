// Package budget answers one question: how much may a trial spend now?
//
// A [Budget] has two axes, epochs and the share of the training data, and a
// [Settings] turns the user's minimum and maximum of each into a ladder of
// rungs. Three policies are one mechanism: "multi" grows both axes together
// (EdgeTune; Rocha's thesis, section 7.4.3, algorithm 6), "epochs" pins the
// data fraction to its maximum, "dataset" pins the epochs a rung trains.
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
)

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

// Settings is the budget section of a study.
type Settings struct {
	Policy       Policy        `json:"policy"`
	Growth       Growth        `json:"growth"`
	Epochs       EpochRange    `json:"epochs"`
	DataFraction FractionRange `json:"data_fraction"`
	// Eta is the reduction factor: about one trial in Eta goes up a rung.
	Eta int `json:"eta"`
}
