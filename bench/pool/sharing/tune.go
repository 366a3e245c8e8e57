package sharing

import (
	"fmt"
	"math"

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
func hide(samples []utilization.Sample, settings utilization.Settings, by string) (utilization.Verdict, error) {
	parts := utilization.DrawnParts(len(samples), settings.Seed)
	if by == byFamily {
		if parts = utilization.Families(samples); len(parts) < 2 {
			return utilization.Verdict{}, fmt.Errorf("all %d profiles are of one family: none can be hidden", len(samples))
		}
	}
	return utilization.Judge(samples, parts, func(rest []utilization.Sample) (*utilization.Model, error) {
		return utilization.Train(rest, settings)
	})
}

// tune returns the settings with which the utilization of trainings is predicted
// best that were not seen, of a method: section 5's grid of the number and depth
// of trees.
func tune(samples []utilization.Sample, method string, seed uint64) (utilization.Settings, error) {
	best, least := utilization.Settings{Method: method, Seed: seed}, math.Inf(1)
	for _, one := range grid(method) {
		one.Seed = seed
		verdict, err := hide(samples, one, bySample)
		if err != nil {
			return best, err
		}
		if verdict.Utilization < least {
			best, least = one, verdict.Utilization
		}
	}
	return best, nil
}

func grid(method string) (list []utilization.Settings) {
	if method != utilization.Forest {
		return []utilization.Settings{{Method: method}}
	}
	for _, depth := range []int{4, 8, 16} {
		for _, leaf := range []int{1, 2, 4} {
			list = append(list, utilization.Settings{Method: method, Trees: 100, Depth: depth, Leaf: leaf})
		}
	}
	return list
}
