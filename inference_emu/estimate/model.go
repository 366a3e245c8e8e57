package estimate

import "math"

// Model estimates inferences on one device.
type Model struct {
	device       Device
	time, energy mixture
	times        int // measurements that were usable
	energies     int
	watts        bool // whether anything is known of power
}

// Fit combines what is known of other devices with measurements on this one;
// without measurements the model stands on the catalogue. Measurements that are
// not positive and finite are left out.
func Fit(device Device, measurements []Measurement, knowledge Knowledge) *Model {
	return fit(device, measurements, knowledge, mixture{})
}

// fit leaves out what counts nothing in a mixture that the one of times is like.
func fit(device Device, measurements []Measurement, knowledge Knowledge, like mixture) *Model {
	var times, energies []Sample
	for _, m := range measurements {
		if usable(m.Seconds) {
			times = append(times, device.TimeSample(m.Workload, m.Configuration, m.Seconds))
		}
		if usable(m.Joules) {
			energies = append(energies, device.EnergySample(m.Workload, m.Configuration, m.Joules))
		}
	}
	return &Model{
		device: device,
		times:  len(times), energies: len(energies),
		time:   mix(knowledge.Time, device, times, like),
		energy: mix(knowledge.Energy, device, energies, mixture{}),
		watts:  device.LoadWatts > 0 || len(energies) > 0,
	}
}

func usable(x float64) bool { return x > 0 && !math.IsInf(x, 0) }

// Quantile of the normal distribution that Within lies inside of.
const Quantile = 1.645

// Predict estimates a run of a workload.
func (m *Model) Predict(w Workload, c Configuration) Prediction {
	out := Prediction{Measurements: m.times, EnergyMeasurements: m.energies}
	out.Seconds = band(m.time.predict(m.device.TimeSample(w, c, 1)))
	if m.watts && len(m.energy.posteriors) > 0 {
		out.Joules = band(m.energy.predict(m.device.EnergySample(w, c, 1)))
	}
	return out
}

func band(mean, deviation float64) Estimate {
	return Estimate{Value: math.Exp(mean), Low: math.Exp(mean - Quantile*deviation), High: math.Exp(mean + Quantile*deviation)}
}
