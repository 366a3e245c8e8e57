package show

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/device"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/format"
)

// PrintDeployments is a line for each device, and what its numbers stand on.
func PrintDeployments(out io.Writer, devices []deployment.Deployment) error {
	var rows [][]string
	for _, one := range devices {
		if !one.Runs() {
			rows = append(rows, []string{format.Plain(one.Device), "-", "-", "-", "-", "-", "it does not run there"})
			continue
		}
		rows = append(rows, []string{format.Plain(one.Device), RunWith(one.Configuration), Band(one.LatencySeconds, Span),
			fmt.Sprintf("%.4g", one.SamplesPerSecond), SampleJoules(one), format.Size(one.MemoryBytes), format.Plain(one.Method)})
	}
	if err := term.Table(out, []string{"DEVICE", "RUN WITH", "LATENCY OF A BATCH", "SAMPLES/S", "J/SAMPLE", "MEMORY", "THE NUMBERS ARE"}, rows); err != nil {
		return err
	}
	for _, one := range devices {
		for _, unmet := range one.Unmet {
			if one.Runs() {
				unmet = "nothing keeps to the constraints: " + unmet
			}
			fmt.Fprintf(out, "  %s: %s\n", format.Plain(one.Device), format.Plain(unmet))
		}
		if one.Batching != nil {
			fmt.Fprintf(out, "  %s: %s, an estimate\n", format.Plain(one.Device), one.Batching)
		}
		if one.MeasuredAt != nil {
			fmt.Fprintf(out, "  %s: %s\n", format.Plain(one.Device), Measured(one, time.Now()))
		}
		if !one.Estimated() && one.EnergyEstimated() {
			fmt.Fprintf(out, "  %s: the joules are not measured: %s\n", format.Plain(one.Device), format.Plain(one.EnergyMethod))
		}
		for _, precision := range one.Precisions {
			fmt.Fprintf(out, "  %s: %s\n", format.Plain(one.Device), format.Plain(precision.String()))
		}
		for _, doubtful := range one.Doubtful {
			fmt.Fprintf(out, "  %s: %s holds for the estimate, but not at the bad end of its band\n", format.Plain(one.Device), format.Plain(doubtful))
		}
	}
	if slices.ContainsFunc(devices, func(one deployment.Deployment) bool {
		return one.Device == device.ThisMachine && one.Configuration.Precision+one.Configuration.Provider != ""
	}) {
		fmt.Fprintln(out, "On this-machine, studies measure precisions and providers in turns: their bands are from the fastest of five rounds to the slowest.")
	}
	fmt.Fprintf(out, "Bands of estimates hold with a probability of %.0f%%, those of what was measured are the 95%% interval of the median.\n", 100*estimate.Within)
	return nil
}

// Band is a quantity with its band, if it has one.
func Band(band deployment.Band, shown func(float64) string) string {
	if band.Low == band.High {
		return shown(band.Value)
	}
	return shown(band.Value) + " (" + shown(band.Low) + " to " + shown(band.High) + ")"
}

// SampleJoules are joules with their band; that they are an estimate is said
// where the column of the numbers says that the latency was measured.
func SampleJoules(one deployment.Deployment) string {
	if one.JoulesPerSample.Value <= 0 {
		return "?"
	}
	text := Band(one.JoulesPerSample, func(joules float64) string { return fmt.Sprintf("%.3g", joules) })
	if !one.Estimated() && one.EnergyEstimated() {
		text += ", estimate"
	}
	return text
}

// RunWith is a configuration in words.
func RunWith(c tuning.Configuration) string {
	parts := []string{"batch " + strconv.Itoa(c.BatchSize)}
	if c.Precision != "" {
		parts = append(parts, format.Plain(c.Precision))
	}
	if c.Provider != "" {
		parts = append(parts, format.Plain(c.Provider))
	}
	if c.Cores > 0 {
		parts = append(parts, format.Count(c.Cores, "core"))
	}
	if c.CPUHertz > 0 {
		parts = append(parts, fmt.Sprintf("%.4g GHz", c.CPUHertz/1e9))
	}
	return strings.Join(parts, ", ")
}

// Measured is when the deployment was measured, and what it took before if it drifted.
func Measured(d deployment.Deployment, now time.Time) string {
	const minutes = "2006-01-02 15:04"
	text := fmt.Sprintf("measured on %s, %s ago", d.MeasuredAt.Local().Format(minutes), format.Seconds(now.Sub(*d.MeasuredAt).Seconds()))
	if d.Drift != nil {
		text += fmt.Sprintf("; it drifted: it took %s until %s", Span(d.Drift.Seconds), d.Drift.At.Local().Format(minutes))
	}
	return text
}

// Span is a short span of time with its unit.
func Span(seconds float64) string {
	switch {
	case seconds < 1e-3:
		return fmt.Sprintf("%.1f us", seconds*1e6)
	case seconds < 1:
		return fmt.Sprintf("%.3g ms", seconds*1e3)
	}
	return fmt.Sprintf("%.3g s", time.Duration(seconds*float64(time.Second)).Seconds())
}
