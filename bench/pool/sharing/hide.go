package sharing

import (
	"fmt"

	"github.com/tandem-tune/tandem/workers/gpushare/utilization"
)

// Splits of [hide].
const (
	// bySample hides a fifth of the trainings in turn, as the paper does.
	bySample = "sample"
	// byFamily hides one family of architectures in turn: what is predicted is
	// of a kind that was never seen (section 8 leaves it open).
	byFamily = "family"
)

// hidden is how well trainings are predicted that a model did not see.
type hidden struct {
	said, was     [2][]float64 // the utilizations in percent, the memories in megabytes
	under, inside int
}

func (h *hidden) add(was utilization.Sample, said utilization.Prediction) {
	h.said[0], h.was[0] = append(h.said[0], 100*said.Utilization), append(h.was[0], 100*was.Utilization)
	h.said[1], h.was[1] = append(h.said[1], float64(said.MemoryBytes)/1e6), append(h.was[1], float64(was.MemoryBytes)/1e6)
	if said.Utilization < 0.9*was.Utilization {
		h.under++
	}
	if said.UtilizationLow <= was.Utilization && was.Utilization <= said.UtilizationHigh {
		h.inside++
	}
}

// columns are the RMSLE of the utilization and of the memory, and how many in a hundred
// were predicted to use less than they do, by more than a tenth, and how many are within
// the band.
func (h *hidden) columns() [4]float64 {
	each := 100 / float64(len(h.was[0]))
	return [4]float64{utilization.RMSLE(h.said[0], h.was[0]), utilization.RMSLE(h.said[1], h.was[1]), each * float64(h.under), each * float64(h.inside)}
}

// hide trains on parts of the samples and predicts the rest, so that each is
// predicted once.
func hide(samples []utilization.Sample, method utilization.Method, by string, seed uint64) (*hidden, error) {
	parts := utilization.DrawnParts(len(samples), seed)
	if by == byFamily {
		if parts = utilization.Families(samples); len(parts) < 2 {
			return nil, fmt.Errorf("all %d profiles are of one family: none can be hidden", len(samples))
		}
	}
	h := &hidden{}
	return h, utilization.Hide(samples, parts, func(rest []utilization.Sample) (*utilization.Model, error) {
		return utilization.Train(rest, method)
	}, h.add)
}
