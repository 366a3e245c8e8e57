package dopeml

// NewPredictor makes a predictor that knows nothing.
func NewPredictor(shape Shape) Predictor { return &ridge{shape: shape} }

// Predictor is what choosers predict by.
type Predictor = *ridge
