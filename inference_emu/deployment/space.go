package deployment

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// space is what can be chosen: of clocks those of the fastest cluster, if it has
// steps.
func (s site) space() tuning.Space {
	space := tuning.Space{BatchSizes: tuning.Range(s.settings.BatchLow, s.settings.BatchHigh), Cores: s.settings.cores(s.device)}
	if fixed := s.architecture.Graph.FixedBatch; fixed > 0 {
		space.BatchSizes = []int{int(fixed)}
	}
	space.CPUHertz = s.settings.Clocks(s.device)
	return space
}

// oneClock is how near two clocks are that are one, by rounding.
const oneClock = 1e6

// Clocks are the clocks of the device's fastest cluster that are searched, of those that may
// be; none if it has no steps, or they stay as they are.
func (s Settings) Clocks(on device.Device) (list []float64) {
	steps := on.Clusters[0].StepsHertz
	if steps == nil || s.Unpinned {
		return nil
	}
	for _, step := range steps.Value {
		near := func(clock float64) bool { return math.Abs(clock-step) < oneClock }
		if len(s.ClocksHertz) == 0 || slices.ContainsFunc(s.ClocksHertz, near) {
			list = append(list, step)
		}
	}
	return list
}

// cores are the numbers of cores that are tried on the device, which may have fewer than are
// asked for.
func (s Settings) cores(on device.Device) []int {
	own := on.Clusters[0].Cores.Value
	high := own
	if s.CoresHigh > 0 {
		high = min(own, s.CoresHigh)
	}
	return tuning.Range(min(max(1, s.CoresLow), high), high)
}
