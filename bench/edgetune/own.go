package main

import (
	_ "embed" // the runs of our own
	"fmt"
	"io"
	"math"
	"slices"

	"github.com/tandem-tune/tandem/bench/edgetune/learning"
	"github.com/tandem-tune/tandem/bench/edgetune/runs"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
)

// ownRuns are what ten networks of the zoo took with ONNX Runtime on the machine
// that this was developed on; bench/edgetune/here kept them.
//
//go:embed onnxruntime.json
var ownRuns []byte

// ownEngine is what devices call the engine of the runs.
const ownEngine = "onnx-runtime"

// extend adds the prior of ONNX Runtime to knowledge, from the wanted networks.
func extend(k estimate.Knowledge, wanted func(network string) bool) (estimate.Knowledge, error) {
	own, err := runs.Parse(ownRuns)
	if err != nil {
		return k, fmt.Errorf("onnxruntime.json: %w", err)
	}
	return learning.Extend(k, ownEngine, []learning.Series{{Device: own.Device, Measurements: own.Measurements(wanted)}}), nil
}

// reportOwn says how far estimates of each of our networks are off what was
// learned from the published tables alone, and from the other nine as well.
func reportOwn(out io.Writer) error {
	own, err := runs.Parse(ownRuns)
	if err != nil {
		return err
	}
	published, err := estimate.Known()
	if err != nil {
		return err
	}
	published.Time = slices.DeleteFunc(published.Time, func(p estimate.Prior) bool { return p.Name == ownEngine })
	fmt.Fprintf(out, "\n**onnxruntime, latency** (%s on %s, %d cores; nothing calibrated)\n\n", own.Runtime, own.Device.Name, own.Device.Cores)
	fmt.Fprintln(out, "| network | learned from published tables: median % / 90th | and from the nine other networks |")
	fmt.Fprintln(out, "|---|---|---|")
	var before, after []float64
	for _, left := range own.Models() {
		others, err := extend(published, func(network string) bool { return network != left })
		if err != nil {
			return err
		}
		truth := own.Measurements(func(network string) bool { return network == left })
		without, with := percentOff(own.Device, published, truth), percentOff(own.Device, others, truth)
		fmt.Fprintf(out, "| %s | %s | %s |\n", left, shownOff(without), shownOff(with))
		before, after = append(before, without...), append(after, with...)
	}
	fmt.Fprintf(out, "| all | %s | %s |\n", shownOff(before), shownOff(after))
	return nil
}

// percentOff are the errors of estimates that stand on no measurement of the device.
func percentOff(on estimate.Device, knowledge estimate.Knowledge, truth []estimate.Measurement) []float64 {
	model := estimate.Fit(on, nil, knowledge)
	var errors []float64
	for _, m := range truth {
		errors = append(errors, 100*math.Abs(model.Predict(m.Workload, m.Configuration).Seconds.Value-m.Seconds)/m.Seconds)
	}
	return errors
}

func shownOff(errors []float64) string {
	return fmt.Sprintf("%.1f / %.1f", median(errors), quantile(errors, 0.9))
}
