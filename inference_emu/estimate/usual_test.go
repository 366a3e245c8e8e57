package estimate_test

import (
	"fmt"
	"math"
	"testing"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// An engine that is slow at one network is slow at it on every device: a device
// that has not measured it is foreseen to be.
func TestWhatAllDevicesLeaveOverIsForeseen(t *testing.T) {
	slow := func(i int) bool { return i == 7 || i == 8 }
	workload := func(i int) estimate.Workload {
		w := network(math.Exp(float64(i)/2.5 - 5))
		w.Float.Heavy += float64(i % 5 * 20)
		return w
	}
	series := func(name string, speed float64) estimate.Series {
		device := board()
		device.Name = name
		s := estimate.Series{Device: device}
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
	var taught []estimate.Series
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
	model := estimate.Fit(held.Device, calibration, estimate.Learn(taught))
	for _, i := range []int{7, 8} {
		truth := held.Measurements[i]
		if off := model.Predict(truth.Workload, estimate.Configuration{}).Seconds.Value / truth.Seconds; off < 0.85 || off > 1.15 {
			t.Errorf("network %d: %.2f of what it takes", i, off)
		}
	}
}
