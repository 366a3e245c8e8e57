package estimate

import (
	"math"
	"slices"
)

// Knowledge is how the factors of time and of energy are spread over devices. It
// is learned from devices on which many inferences were measured.
type Knowledge struct {
	// Devices that it was learned from; none of them is predicted honestly with it.
	Devices []string `json:"devices"`
	// Time and Energy each have a prior of all devices first, and then one for
	// each engine of which enough is known.
	Time   []Prior `json:"time"`
	Energy []Prior `json:"energy"`
}

// Series is what was measured on one device with one engine.
type Series struct {
	Device       Device
	Measurements []Measurement
}

// unknownWatts stands for a device of which no power is known.
const unknownWatts = 5

func (d Device) watts() float64 {
	if d.LoadWatts > 0 {
		return d.LoadWatts
	}
	return unknownWatts
}

// TimeSample is the regression of time's view of a run.
func (d Device) TimeSample(w Workload, c Configuration, seconds float64) Sample {
	return Sample{Terms: d.seconds(w, c), Place: d.place(w, c), Log: math.Log(seconds)}
}

// EnergySample multiplies the sum of the seconds by one of the watts.
func (d Device) EnergySample(w Workload, c Configuration, joules float64) Sample {
	return Sample{Terms: append(d.seconds(w, c), d.power(c)...), Place: d.place(w, c), Log: math.Log(joules)}
}

// Extend adds a prior of time for an engine that was measured on fewer devices than
// are needed to tell how devices with it differ. Its factors are the mean of what
// the devices show, seen from the prior of all devices; how far a device may be from
// them stays as it is over all devices. Engines have kernels of their own for each
// kind of core, so it is taken for devices alone whose cores compute about as wide as
// those it was learned from.
func (k Knowledge) Extend(engine string, series []Series) Knowledge {
	var groups [][]Sample
	width := 0.0
	k.Devices = slices.Clone(k.Devices)
	for _, one := range series {
		if s := TimeSamples(one); len(s) > 0 {
			groups = append(groups, s)
			k.Devices = append(k.Devices, one.Device.Name)
			width += one.Device.Float32PerCycle
		}
	}
	if len(groups) == 0 || len(k.Time) == 0 {
		return k
	}
	all, mean := k.Time[0], make([]float64, terms)
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

// TimeSamples are those of a series.
func TimeSamples(s Series) []Sample {
	var out []Sample
	for _, m := range s.Measurements {
		out = append(out, s.Device.TimeSample(m.Workload, m.Configuration, m.Seconds))
	}
	return out
}
