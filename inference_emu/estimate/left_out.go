package estimate

import (
	"math"
	"slices"
)

// LeftOut estimates what was measured of each workload without that: with no measurement
// at all, and with those of the other workloads, of which up to so many parts are left out
// together. Both are logarithms of estimate over measurement, of the same ones in the same
// order; with is nil where one workload was measured. If a model that was fitted to all of
// them is given, what counts nothing in it is not tried again.
func LeftOut(device Device, measurements []Measurement, knowledge Knowledge, parts int, judged *Model) (without, with []float64) {
	knowledge.Energy = nil // nothing is asked of it
	var like mixture
	if judged != nil {
		like = judged.time
	}
	var workloads []Workload
	for _, m := range measurements {
		if !slices.Contains(workloads, m.Workload) {
			workloads = append(workloads, m.Workload)
		}
	}
	plain := Fit(device, nil, knowledge)
	for part := range min(parts, len(workloads)) {
		var own, others []Measurement
		for _, m := range measurements {
			if slices.Index(workloads, m.Workload)%parts == part {
				own = append(own, m)
			} else {
				others = append(others, m)
			}
		}
		fitted := fit(device, others, knowledge, like)
		for _, m := range own {
			without = append(without, math.Log(plain.Predict(m.Workload, m.Configuration).Seconds.Value/m.Seconds))
			if len(workloads) > 1 {
				with = append(with, math.Log(fitted.Predict(m.Workload, m.Configuration).Seconds.Value/m.Seconds))
			}
		}
	}
	return without, with
}

// Helps reports whether a calibration makes estimates of other workloads better in the
// mean, or cannot be judged.
func Helps(without, with []float64) bool {
	gain := 0.0
	for i := range with {
		gain += math.Abs(without[i]) - math.Abs(with[i])
	}
	return len(with) == 0 || gain > 0
}
