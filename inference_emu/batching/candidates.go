package batching

import "slices"

// candidates are the policies that are worth a try under the rate: batch sizes
// that are dense where they are small, and waits from none to for ever, by how
// long a batch takes to fill and to infer. Policies that do not sustain the
// rate are left out.
func candidates(server Server, rate float64) []Policy {
	policies := sustained(server, []Policy{Single()}, rate)
	for _, size := range sizes(server.Curve) {
		for _, wait := range waits(server.Curve, size, rate) {
			policies = append(policies, sustained(server, []Policy{{MaxBatch: size, WaitSeconds: wait}}, rate)...)
		}
		policies = append(policies, sustained(server, []Policy{Fixed(size)}, rate)...)
	}
	return policies
}

func sustained(server Server, policies []Policy, rate float64) []Policy {
	return slices.DeleteFunc(policies, func(policy Policy) bool { return rate >= server.Sustains(policy) })
}

// sizes are the batch sizes above 1 to try: all up to 12, then in steps of a
// quarter, and all measured ones.
func sizes(curve Curve) []int {
	var list []int
	for size := 2; size < curve.Largest(); size = max(size+1, size*5/4) {
		list = append(list, size)
	}
	for _, point := range curve.points {
		if point.Batch > 1 {
			list = append(list, point.Batch)
		}
	}
	slices.Sort(list)
	return slices.Compact(list)
}

func waits(curve Curve, size int, rate float64) []float64 {
	list := []float64{0}
	fill := float64(size-1) / rate
	for _, share := range []float64{0.05, 0.1, 0.2, 0.35, 0.5, 0.75, 1, 1.5} {
		list = append(list, share*fill)
	}
	for _, share := range []float64{0.25, 0.5, 1, 2} {
		list = append(list, share*curve.At(1).Seconds)
	}
	return append(list, 0.25*curve.At(size).Seconds, 0.5*curve.At(size).Seconds)
}

// neighbours are the policies around one, for a closer look.
func neighbours(server Server, policy Policy, rate float64) []Policy {
	var list []Policy
	for _, step := range []int{-2, -1, 1, 2} {
		near := policy
		near.MaxBatch += step
		list = append(list, near)
	}
	if policy.WaitSeconds > 0 && !policy.UntilFull {
		for _, factor := range []float64{0.7, 0.85, 1.15, 1.4} {
			near := policy
			near.WaitSeconds *= factor
			list = append(list, near)
		}
	}
	list = slices.DeleteFunc(list, func(near Policy) bool { return near.MaxBatch < 2 || near.MaxBatch > server.Curve.Largest() })
	return sustained(server, list, rate)
}
