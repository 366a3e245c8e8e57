package dopeml

import (
	"math"

	"github.com/tandem-tune/tandem/inference_emu/graph"
)

// encoder turns a model, a request and a backend into the numbers predictors
// see. The backend comes first: which one it is, then what it is made of, so
// that predictors can share what backends have in common. Sizes are logarithms.
type encoder struct{ profiles []Profile }

// made is how many columns say what a backend is made of.
const made = 4

// condition is how many of the leading columns describe the backend.
func (e encoder) condition() int { return len(e.profiles) + made }

func (e encoder) columns() int {
	return e.condition() + 8 + len(graph.Classes()) + 3 + len(patterns())
}

func (e encoder) encode(model Model, request Request, backend int) []float64 {
	row := make([]float64, len(e.profiles), e.columns())
	row[backend] = 1
	profile := e.profiles[backend]
	row = append(row, logarithm(profile.Cores), logarithm(profile.MemoryBytes), profile.GPUs, logarithm(profile.GPUMemoryBytes),
		logarithm(model.Operations), logarithm(model.Parameters), logarithm(model.WeightBytes), logarithm(model.ActivationBytes),
		logarithm(model.PeakBytes), logarithm(model.InputElements), model.Quantized, model.Accuracy)
	for _, class := range graph.Classes() {
		row = append(row, logarithm(model.Layers[class]))
	}
	row = append(row, logarithm(request.Rate), logarithm(request.Batch), logarithm(request.Inferences))
	pattern := request.Pattern
	if pattern == "" {
		pattern = Periodic
	}
	for _, one := range patterns() {
		row = append(row, indicator(one == pattern))
	}
	return row
}

func logarithm(x float64) float64 { return math.Log1p(x) }

func indicator(yes bool) float64 {
	if yes {
		return 1
	}
	return 0
}
