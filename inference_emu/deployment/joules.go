package deployment

import (
	"math"
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
)

// joules are those of a batch that takes so long: the time multiplied by watts, so that
// both go together. If joules were measured on the device, those are the estimate's, but
// no more and no less than the catalogue says or was measured. If only times were, they
// are those that the estimate had without measurements, between what the board draws at
// rest and under load, which are the band.
func (s site) joules(c tuning.Configuration, p estimate.Prediction, seconds estimate.Estimate) estimate.Estimate {
	idle, load := s.device.Power.IdleWatts.Value, s.device.Power.LoadWatts.Value
	if s.fit.plain == nil {
		for _, m := range s.fit.measurements {
			if m.Joules > 0 && m.Seconds > 0 {
				idle, load = min(idle, m.Joules/m.Seconds), max(load, m.Joules/m.Seconds)
			}
		}
		if p.EnergyMeasurements == 0 {
			return p.Joules
		}
		j := p.Joules
		j.Value = min(max(j.Value, idle*seconds.Value), load*seconds.Value)
		j.Low, j.High = min(j.Low, j.Value), max(j.High, j.Value)
		return j
	}
	before := s.fit.plain.Predict(s.workload, s.settingOf(c))
	watts := within(before.Joules, before.Seconds.Value, idle, load)
	return estimate.Estimate{Value: watts * seconds.Value, Low: idle * seconds.Low, High: load * seconds.High}
}

// within is the median of the watts of joules in so many seconds, if those are known to
// be between low and high: of a normal distribution of logarithms that is cut off there.
func within(joules estimate.Estimate, seconds, low, high float64) float64 {
	mean, deviation := math.Log(joules.Value/seconds), math.Log(joules.High/joules.Value)/estimate.Quantile
	below := func(watts float64) float64 { return math.Erf((math.Log(watts) - mean) / deviation / math.Sqrt2) }
	middle := math.Exp(mean + math.Sqrt2*deviation*math.Erfinv((below(low)+below(high))/2))
	if !(middle > low && middle < high) { // it is far outside: both ends are as good
		return (low + high) / 2
	}
	return middle
}

// timed reports whether there are times, and no joules with any of them.
func timed(measurements []estimate.Measurement) bool {
	return len(measurements) > 0 && !slices.ContainsFunc(measurements, func(m estimate.Measurement) bool { return m.Joules > 0 })
}
