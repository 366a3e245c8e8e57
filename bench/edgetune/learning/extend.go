package learning

import (
	"slices"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// Extend adds a prior of time for an engine that was measured on fewer devices than
// are needed to tell how devices with it differ. Its factors are the mean of what
// the devices show, seen from the prior of all devices; how far a device may be from
// them stays as it is over all devices. Engines have kernels of their own for each
// kind of core, so it is taken for devices alone whose cores compute about as wide as
// those it was learned from.
func Extend(k estimate.Knowledge, engine string, series []Series) estimate.Knowledge {
	var groups [][]estimate.Sample
	width := 0.0
	k.Devices = slices.Clone(k.Devices)
	for _, one := range series {
		if s := timeSamples(one); len(s) > 0 {
			groups = append(groups, s)
			k.Devices = append(k.Devices, one.Device.Name)
			width += one.Device.Float32PerCycle
		}
	}
	if len(groups) == 0 || len(k.Time) == 0 {
		return k
	}
	all := k.Time[0]
	mean := make([]float64, len(all.Mean))
	for _, samples := range groups {
		for i, factor := range all.Fit(samples, all.Mean, nil).Factors {
			mean[i] += factor / float64(len(groups))
		}
	}
	p := all
	p.Name, p.Mean, p.Float32PerCycle = engine, mean, width/float64(len(groups))
	k.Time = append(slices.Clone(k.Time), p)
	return k
}

func timeSamples(s Series) []estimate.Sample {
	var out []estimate.Sample
	for _, m := range s.Measurements {
		out = append(out, s.Device.TimeSample(m.Workload, m.Configuration, m.Seconds))
	}
	return out
}
