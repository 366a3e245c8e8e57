package backend

// NewPredictor makes a predictor that knows nothing.
func NewPredictor(shape Shape) Predictor { return newRidge(shape) }

// Predictor is what choosers predict by.
type Predictor = *ridge
