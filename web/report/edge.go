package report

import (
	"fmt"
	"math"
	"strings"

	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/internal/format"
)

// edgeFigure is what an inference of the winner's model takes on each device,
// with a band around each estimate.
func edgeFigure(source Source) figure {
	f := figure{ID: "edge", Title: "Deployments on edge devices", Width: wide, Height: 40}
	devices, _ := runnable(source.Recommendation.Deployments)
	if len(devices) == 0 {
		return f
	}
	shown := devices[:min(len(devices), maxBars)]
	low, high := math.Inf(1), 0.0
	for _, one := range shown {
		low, high = min(low, one.LatencySeconds.Low, one.LatencySeconds.Value), max(high, one.LatencySeconds.High, one.LatencySeconds.Value)
	}
	if !(low > 0) || math.IsInf(low, 0) || math.IsInf(high, 0) {
		low, high = 1e-6, 1
	}
	f.Height = 26*float64(len(shown)) + 56
	x := scale{low: low / 1.3, high: high * 1.3, from: 190, to: f.Width - 150, log: true}
	y := 8 + 26*float64(len(shown))
	for _, value := range x.ticks(6) {
		f.line("grid", x.at(value), 6, x.at(value), y)
		f.text("tick middle", x.at(value), y+15, span(value))
	}
	f.text("name end", x.to, y+34, "latency of a batch")
	for i, one := range shown {
		f.device(one, x, 8+26*float64(i))
	}
	f.Summary = fmt.Sprintf("How long a batch takes with the best configuration on %s: the dot is the value, the line its band.", format.Count(len(shown), "device"))
	f.Keys = []key{{"front", "dot", "measured"}, {"hollow", "dot", "estimate, with its band"}}
	f.Numbers = edgeTable(devices)
	for _, one := range devices {
		for _, unmet := range one.Unmet {
			f.note(fmt.Sprintf("%s: nothing keeps to the constraints: %s.", one.Device, unmet))
		}
		for _, doubtful := range one.Doubtful {
			f.note(fmt.Sprintf("%s: %s holds for the estimate, but not at the bad end of its band.", one.Device, doubtful))
		}
	}
	if left := len(devices) - len(shown); left > 0 {
		f.note(fmt.Sprintf("%s left out of the drawing.", format.Count(left, "device")))
	}
	return f
}

// runnable are the devices on which the model runs, and why it does not on the others.
func runnable(devices []deployment.Deployment) (running []deployment.Deployment, why []string) {
	for _, one := range devices {
		if one.Runs() {
			running = append(running, one)
			continue
		}
		for _, unmet := range one.Unmet {
			why = append(why, one.Device+": "+unmet+".")
		}
	}
	return running, why
}

func (f *figure) device(one deployment.Deployment, x scale, y float64) {
	class, said := "dot front", span(one.LatencySeconds.Value)
	if one.Estimated() {
		class, said = "dot hollow", said+" (estimate)"
	}
	f.text("label end", x.from-8, y+14, clipped(one.Device, 26))
	if one.LatencySeconds.High > one.LatencySeconds.Low {
		f.line("band", x.at(one.LatencySeconds.Low), y+10, x.at(one.LatencySeconds.High), y+10)
	}
	f.circle(class, x.at(one.LatencySeconds.Value), y+10, 5, one.Device+": "+said)
	f.text("label", x.at(max(one.LatencySeconds.Value, one.LatencySeconds.High))+9, y+14, said)
}

// span is a short time as people say it.
func span(seconds float64) string {
	switch {
	case seconds >= 1:
		return fmt.Sprintf("%.3g s", seconds)
	case seconds >= 1e-3:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g µs", seconds*1e6)
}

func edgeTable(devices []deployment.Deployment) *table {
	t := &table{Caption: "The best configuration on each device", Heading: []string{"Device", "Run with", "Latency of a batch", "Samples a second", "Joules a sample", "Memory", "The numbers are", "The joules are"}}
	for _, one := range devices {
		joules := "not known"
		if one.JoulesPerSample.Value > 0 {
			joules = fmt.Sprintf("%.3g", one.JoulesPerSample.Value)
			if one.EnergyEstimated() {
				joules += " (estimate)"
			}
		}
		t.Rows = append(t.Rows, []cell{words(one.Title), words(settingOf(one)),
			numeral(fmt.Sprintf("%s (%s to %s)", span(one.LatencySeconds.Value), span(one.LatencySeconds.Low), span(one.LatencySeconds.High))),
			numeral(fmt.Sprintf("%.4g", one.SamplesPerSecond)), numeral(joules), numeral(format.Size(one.MemoryBytes)), words(one.Method), words(one.EnergyMethod)})
	}
	return t
}

func settingOf(one deployment.Deployment) string {
	c := one.Configuration
	parts := []string{fmt.Sprintf("batch %d", c.BatchSize)}
	if c.Cores > 0 {
		parts = append(parts, format.Count(c.Cores, "core"))
	}
	if c.CPUHertz > 0 {
		parts = append(parts, fmt.Sprintf("%.4g GHz", c.CPUHertz/1e9))
	}
	return strings.Join(parts, ", ")
}
