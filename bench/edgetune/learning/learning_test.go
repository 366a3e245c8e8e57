package learning_test

import (
	"fmt"
	"math"
	"math/rand/v2"
	"testing"

	"github.com/tandem-tune/tandem/bench/edgetune/learning"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

func board() estimate.Device {
	return estimate.Device{
		Name: "board", Engine: "tflite", Cores: 4, ClockHertz: 1.5e9, Float32PerCycle: 8, Int8PerCycle: 16,
		MemoryBytesPerSecond: 4e9, MemoryHertz: 1.6e9, IdleWatts: 3, LoadWatts: 6,
	}
}

// network is some network: convolutions of all sorts, wider or narrower.
func network(size float64) estimate.Workload {
	return estimate.Workload{Name: "network", Float: estimate.Work{
		Spatial: 2e7 * size, Pointwise: 5e8 * size, Depthwise: 4e7 * size, Linear: 2e6,
		DenseBytes: 2e7 * math.Sqrt(size), DepthwiseBytes: 1e7 * math.Sqrt(size), LightBytes: 2e6 * math.Sqrt(size), WeightBytes: 1.5e7 * size, Heavy: 50, Light: 14,
	}}
}

// measure makes up what a device would measure: every sort of work at its own
// efficiency, and watts that depend on the work.
func measure(w estimate.Workload, noise float64) estimate.Measurement {
	seconds := w.Float.Spatial/2e10 + w.Float.Pointwise/3e10 + w.Float.Depthwise/6e9 + (w.Float.DenseBytes+w.Float.DepthwiseBytes)/3e9 + 2e-5*w.Float.Heavy
	return estimate.Measurement{Workload: w, Seconds: seconds * math.Exp(noise), Joules: seconds * 5 * math.Exp(noise)}
}

func drawn(random *rand.Rand) estimate.Workload {
	w := network(math.Exp(random.NormFloat64()))
	w.Float.Depthwise *= math.Exp(random.NormFloat64() / 2)
	w.Float.Spatial *= math.Exp(random.NormFloat64())
	return w
}

// An engine that is slow at one network is slow at it on every device: a device
// that has not measured it is foreseen to be.
func TestWhatAllDevicesLeaveOverIsForeseen(t *testing.T) {
	slow := func(i int) bool { return i == 7 || i == 8 }
	workload := func(i int) estimate.Workload {
		w := network(math.Exp(float64(i)/2.5 - 5))
		w.Float.Heavy += float64(i % 5 * 20)
		return w
	}
	series := func(name string, speed float64) learning.Series {
		device := board()
		device.Name = name
		s := learning.Series{Device: device}
		for i := range 25 {
			m := measure(workload(i), 0)
			m.Seconds *= speed
			if slow(i) {
				m.Seconds *= 1.4
			}
			s.Measurements = append(s.Measurements, m)
		}
		return s
	}
	var taught []learning.Series
	for i := range 6 {
		taught = append(taught, series(fmt.Sprint(i), 1+float64(i)/4))
	}
	held := series("held", 1.6)
	var calibration []estimate.Measurement
	for i, m := range held.Measurements {
		if i%2 == 0 && !slow(i) {
			calibration = append(calibration, m)
		}
	}
	model := estimate.Fit(held.Device, calibration, learning.Learn(taught))
	for _, i := range []int{7, 8} {
		truth := held.Measurements[i]
		if off := model.Predict(truth.Workload, estimate.Configuration{}).Seconds.Value / truth.Seconds; off < 0.85 || off > 1.15 {
			t.Errorf("network %d: %.2f of what it takes", i, off)
		}
	}
}

func TestLearningNarrowsTheBand(t *testing.T) {
	random := rand.New(rand.NewPCG(9, 9))
	var series []learning.Series
	for i := range 6 {
		device := board()
		device.Name = string(rune('a' + i))
		s := learning.Series{Device: device}
		for range 30 {
			m := measure(drawn(random), 0.02*random.NormFloat64())
			m.Seconds *= 1 + float64(i)/10
			s.Measurements = append(s.Measurements, m)
		}
		series = append(series, s)
	}
	width := func(k estimate.Knowledge) float64 {
		e := estimate.Fit(board(), nil, k).Predict(network(1), estimate.Configuration{}).Seconds
		return e.High / e.Low
	}
	nothing, learned := learning.Learn(nil), learning.Learn(series)
	if before, after := width(nothing), width(learned); after > before/2 {
		t.Errorf("band is wide by %.2f after learning and by %.2f before", after, before)
	}
	if len(learned.Devices) != 6 || len(learned.Time) != 2 || learned.Time[1].Name != "tflite" {
		t.Errorf("learned from %v, %d priors", learned.Devices, len(learned.Time))
	}
}

// A prior that few devices taught leaves room for other devices: it moves the
// estimate to what they show, its band holds a machine half as fast, and cores of
// another kind are not estimated with it.
func TestAnEngineOfOneDeviceIsKnownWithRoom(t *testing.T) {
	random := rand.New(rand.NewPCG(7, 8))
	taught := learning.Series{Device: board()}
	taught.Device.Engine = "new"
	for range 60 {
		m := measure(drawn(random), 0)
		m.Seconds *= 4
		taught.Measurements = append(taught.Measurements, m)
	}
	before, err := estimate.Known()
	if err != nil {
		t.Fatal(err)
	}
	priors := len(before.Time)
	after := learning.Extend(before, "new", []learning.Series{taught})
	if len(after.Time) != priors+1 || len(after.Devices) != len(before.Devices)+1 || len(before.Time) != priors {
		t.Fatalf("%d priors and %d devices became %d and %d", len(before.Time), len(before.Devices), len(after.Time), len(after.Devices))
	}
	other := taught.Device
	other.Name, other.Float32PerCycle = "another", 16
	model := estimate.Fit(other, nil, after)
	inside, errors := 0, 0.0
	for range 100 {
		truth := measure(drawn(random), 0)
		truth.Seconds *= 4
		p := model.Predict(truth.Workload, estimate.Configuration{}).Seconds
		errors += math.Abs(math.Log(p.Value / truth.Seconds))
		if p.Low <= 2*truth.Seconds && 2*truth.Seconds <= p.High {
			inside++
		}
	}
	if errors > 70 || inside < 90 {
		t.Errorf("off by a factor of %.2f on what it was taught; %d of 100 of a machine half as fast are in the band", math.Exp(errors/100), inside)
	}
	wide := taught.Device
	wide.Float32PerCycle = 64
	if got, want := estimate.Fit(wide, nil, after).Predict(network(1), estimate.Configuration{}), estimate.Fit(wide, nil, before).Predict(network(1), estimate.Configuration{}); got != want {
		t.Errorf("cores eight times as wide are estimated with what others taught: %v instead of %v", got.Seconds, want.Seconds)
	}
	if nothing := learning.Extend(before, "new", nil); len(nothing.Time) != len(before.Time) {
		t.Error("nothing taught a prior")
	}
}
