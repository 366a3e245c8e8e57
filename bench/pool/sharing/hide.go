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

// hide trains on parts of the samples and predicts the rest, so that each is
// predicted once.
func hide(samples []utilization.Sample, method utilization.Method, by string, seed uint64) (utilization.Verdict, error) {
	parts := utilization.DrawnParts(len(samples), seed)
	if by == byFamily {
		if parts = utilization.Families(samples); len(parts) < 2 {
			return utilization.Verdict{}, fmt.Errorf("all %d profiles are of one family: none can be hidden", len(samples))
		}
	}
	return utilization.Judge(samples, parts, func(rest []utilization.Sample) (*utilization.Model, error) {
		return utilization.Train(rest, method)
	})
}
