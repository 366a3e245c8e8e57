package estimate

import "math"

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
