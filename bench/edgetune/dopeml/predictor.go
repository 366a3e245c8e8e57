package dopeml

import (
	"math"
	"slices"
)

// Row is a run as the predictor sees it.
type Row struct {
	// Backend is the place of the run's backend.
	Backend int
	// Features has the columns of the run; the first ones say which backend.
	Features []float64
	// Targets are the encoded measures; NaN for what was not measured.
	Targets []float64
}

// Shape is what the predictor is made for.
type Shape struct {
	// Backends is how many there are: the first columns, of which one is 1.
	Backends int
	// Condition is how many of the leading columns describe the backend.
	Condition int
	// Logarithmic says of each target whether it is the logarithm of what counts.
	Logarithmic []bool
}

// window is how many runs of each backend are learned from.
const window = 1000

// newest are the last runs of each backend. Older ones are forgotten because
// machines, runtimes and loads change.
func newest(rows []Row) []Row {
	var kept []Row
	counts := map[int]int{}
	for _, row := range slices.Backward(rows) {
		if counts[row.Backend]++; counts[row.Backend] <= window {
			kept = append(kept, row)
		}
	}
	slices.Reverse(kept)
	return kept
}

// nothing is a prediction without any run.
func nothing(outputs int) (mean, deviation []float64) {
	mean, deviation = make([]float64, outputs), make([]float64, outputs)
	for o := range mean {
		mean[o], deviation[o] = math.NaN(), math.NaN()
	}
	return mean, deviation
}
