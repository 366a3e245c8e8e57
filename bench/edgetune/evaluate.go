package main

import (
	"fmt"
	"math"
	"math/rand/v2"

	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// accuracy is how far estimates are off what was measured on a series.
type accuracy struct {
	median, high float64 // of |percent error|; high is the 90th percentile
	spearman     float64
	coverage     float64 // share of what was measured within the band
}

// quantity is what is estimated: seconds or joules.
type quantity struct {
	name     string
	measured func(estimate.Measurement) float64
	estimate func(estimate.Prediction) estimate.Estimate
}

func seconds() quantity {
	return quantity{"latency", func(m estimate.Measurement) float64 { return m.Seconds }, func(p estimate.Prediction) estimate.Estimate { return p.Seconds }}
}

func joules() quantity {
	return quantity{"energy", func(m estimate.Measurement) float64 { return m.Joules }, func(p estimate.Prediction) estimate.Estimate { return p.Joules }}
}

// predictor estimates measurements that it was not shown.
type predictor func(calibration []estimate.Measurement) func(estimate.Measurement) estimate.Prediction

// draws is how often calibration measurements are drawn anew.
const draws = 20

// evaluate draws calibration measurements, and holds the estimates of all others
// against what was measured. Errors of all draws are pooled; rank correlation and
// coverage are means over draws.
func evaluate(s *series, calibration int, of quantity, predict predictor) accuracy {
	var errors []float64
	var out accuracy
	random := rand.New(rand.NewPCG(75, 4))
	times := draws
	if calibration == 0 {
		times = 1
	}
	for range times {
		order := random.Perm(len(s.Measurements))
		var chosen []estimate.Measurement
		for _, i := range order[:calibration] {
			chosen = append(chosen, s.Measurements[i])
		}
		estimated := predict(chosen)
		var real, guessed []float64
		inside := 0.0
		for _, i := range order[calibration:] {
			truth := of.measured(s.Measurements[i])
			if !(truth > 0) {
				continue
			}
			e := of.estimate(estimated(s.Measurements[i]))
			if !(e.Value > 0) {
				continue // only baselines know nothing at times
			}
			errors = append(errors, 100*math.Abs(e.Value-truth)/truth)
			real, guessed = append(real, truth), append(guessed, e.Value)
			if e.Low <= truth && truth <= e.High {
				inside++
			}
		}
		if len(real) == 0 {
			continue
		}
		out.spearman += spearman(real, guessed) / float64(times)
		out.coverage += inside / float64(len(real)) / float64(times)
	}
	out.median, out.high = quantile(errors, 0.5), quantile(errors, 0.9)
	return out
}

// modelled is the estimate that is judged.
func modelled(device estimate.Device, knowledge estimate.Knowledge) predictor {
	return func(calibration []estimate.Measurement) func(estimate.Measurement) estimate.Prediction {
		model := estimate.Fit(device, calibration, knowledge)
		return func(m estimate.Measurement) estimate.Prediction { return model.Predict(m.Workload, m.Configuration) }
	}
}

// proportional is a baseline: one factor on something that is known of the
// workload, the median over the calibration measurements.
func proportional(of func(estimate.Measurement) float64) predictor {
	return func(calibration []estimate.Measurement) func(estimate.Measurement) estimate.Prediction {
		var time, energy []float64
		for _, m := range calibration {
			time = append(time, m.Seconds/of(m))
			if m.Joules > 0 {
				energy = append(energy, m.Joules/of(m))
			}
		}
		seconds, joules := median(time), median(energy)
		return func(m estimate.Measurement) estimate.Prediction {
			return estimate.Prediction{Seconds: estimate.Estimate{Value: seconds * of(m)}, Joules: estimate.Estimate{Value: joules * of(m)}}
		}
	}
}

func operations(m estimate.Measurement) float64 {
	return (m.Workload.Float.Operations() + m.Workload.Integer.Operations()) * float64(max(1, m.Configuration.Batch))
}

// key says what was measured, so that it is found on another device.
func key(m estimate.Measurement) string {
	return fmt.Sprint(m.Workload.Name, m.Workload.Integer.Heavy > 0, m.Configuration)
}

// nearest is a baseline: of all other devices the one that calibration
// measurements are most proportional to, scaled. What it has not measured is not
// estimated.
func nearest(s *series, all []*series, of quantity) predictor {
	type table map[string]float64
	var known []table
	for _, other := range all {
		if other.Device.Name == s.Device.Name || other.table != s.table {
			continue
		}
		t := table{}
		for _, m := range other.Measurements {
			if x := of.measured(m); x > 0 {
				t[key(m)] = x
			}
		}
		known = append(known, t)
	}
	return func(calibration []estimate.Measurement) func(estimate.Measurement) estimate.Prediction {
		best, scale, least := table{}, 0.0, math.Inf(1)
		for _, t := range known {
			var ratios []float64
			for _, m := range calibration {
				if x := t[key(m)]; x > 0 {
					ratios = append(ratios, of.measured(m)/x)
				}
			}
			if len(ratios) < len(calibration)/2 {
				continue
			}
			middle, off := median(ratios), 0.0
			for _, r := range ratios {
				off += math.Abs(math.Log(r/middle)) / float64(len(ratios))
			}
			if off < least {
				best, scale, least = t, middle, off
			}
		}
		return func(m estimate.Measurement) estimate.Prediction {
			e := estimate.Estimate{Value: scale * best[key(m)]}
			return estimate.Prediction{Seconds: e, Joules: e}
		}
	}
}
