package trial

// Deflation is what a training leaves out so that others of a higher priority
// wait less.
type Deflation struct {
	// Drop is the share of its rung's data that was left out, above 0 and below 1.
	Drop float64 `json:"drop"`
	// Loss is how much worse the first objective is taken to come out for it, in
	// its own unit: an estimate. Nil: nothing is known.
	Loss *float64 `json:"loss,omitempty"`
	// Why is a sentence on how the share was chosen.
	Why string `json:"why"`
}
