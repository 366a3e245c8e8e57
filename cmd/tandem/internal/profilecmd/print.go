package profilecmd

import (
	"fmt"
	"io"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/trial"
)

func printProfiled(out io.Writer, result profiled) error {
	p := result.Profile
	fmt.Fprintf(out, "\n%s\nended with code %d after %s, %s, counted: %s\n\n", shownCommand(result.Command), result.ExitCode,
		format.Seconds(p.Seconds), format.Count(p.Samples, "sample"), p.Level)
	if err := printEvents(out, p); err != nil {
		return err
	}
	if err := printHost(out, p); err != nil {
		return err
	}
	fmt.Fprintf(out, "Energy: %s, from %s\n", format.Energy(result.Energy), strings.TrimPrefix(result.Energy.Method, "estimate: "))
	printMissing(out, p.Missing)
	return nil
}

// shownCommand is as much of a command as fits into a line.
func shownCommand(command []string) string {
	const most = 120
	text := []rune(format.Plain(strings.Join(command, " ")))
	if len(text) > most {
		return string(text[:most]) + "…"
	}
	return string(text)
}

func printEvents(out io.Writer, p profiler.Profile) error {
	if len(p.Events) == 0 {
		_, err := fmt.Fprint(out, "No event could be counted; see below.\n\n")
		return err
	}
	var rows [][]string
	for _, event := range p.Events {
		each := "-"
		if event.PerInstruction != nil {
			each = format.Number(trial.Float(*event.PerInstruction))
		}
		scaled := "whole"
		if event.Scaled {
			scaled = "scaled: an estimate"
		}
		rows = append(rows, []string{event.Name, shownTotal(event), show.Count(event.PerSecond), each,
			strconv.FormatFloat(100*event.RunFraction, 'f', 0, 64) + "%", scaled})
	}
	if err := term.Table(out, []string{"EVENT", "TOTAL", "PER SECOND", "PER INSTRUCTION", "COUNTED", ""}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// shownTotal gives the clocks their unit.
func shownTotal(event profiler.EventProfile) string {
	if strings.HasSuffix(event.Name, "-clock") {
		return show.Count(event.Total/1e6) + " ms"
	}
	return show.Count(event.Total)
}

func printHost(out io.Writer, p profiler.Profile) error {
	if len(p.Host) == 0 {
		return nil
	}
	var rows [][]string
	for _, metric := range p.Host {
		highest := "-"
		if metric.Highest != nil {
			highest = shownHost(metric.Name, *metric.Highest, true)
		}
		rows = append(rows, []string{metric.Name, shownHost(metric.Name, metric.Value, metric.Highest != nil), highest})
	}
	if err := term.Table(out, []string{"HOST", "MEAN", "HIGHEST"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}

// shownHost gives a metric its unit.
func shownHost(name string, value float64, state bool) string {
	rate := "/s"
	if state {
		rate = ""
	}
	if metric, of := strings.CutPrefix(name, "gpu."); of {
		return shownGPU(metric, value)
	}
	switch {
	case strings.Contains(name, ".cpu_"):
		return fmt.Sprintf("%.3f cores", value)
	case strings.HasSuffix(name, "_bytes") && value >= 1<<20:
		return fmt.Sprintf("%.1f MiB%s", value/(1<<20), rate)
	case strings.HasSuffix(name, "_bytes"):
		return fmt.Sprintf("%.1f KiB%s", value/(1<<10), rate)
	}
	return show.Count(value) + rate
}

// shownGPU gives a GPU's metric its unit.
func shownGPU(metric string, value float64) string {
	switch {
	case strings.HasSuffix(metric, "_bytes"):
		return fmt.Sprintf("%.1f MiB", value/(1<<20))
	case strings.HasSuffix(metric, "_bytes_per_second"):
		return fmt.Sprintf("%.1f MiB/s", value/(1<<20))
	case strings.HasSuffix(metric, "_watts"):
		return fmt.Sprintf("%.1f W", value)
	case strings.HasSuffix(metric, "_mhz"):
		return fmt.Sprintf("%.0f MHz", value)
	case strings.HasSuffix(metric, "_celsius"):
		return fmt.Sprintf("%.1f °C", value)
	default:
		return fmt.Sprintf("%.1f%%", 100*value)
	}
}

// printMissing names what could not be measured, once for each reason.
func printMissing(out io.Writer, missing []proc.Missing) {
	var reasons []string
	names := map[string][]string{}
	for _, one := range missing {
		if !slices.Contains(reasons, one.Reason) {
			reasons = append(reasons, one.Reason)
		}
		names[one.Reason] = append(names[one.Reason], one.Name)
	}
	for _, reason := range reasons {
		fmt.Fprintf(out, "Missing, not 0 (%s): %s\n", format.Plain(reason), format.Plain(strings.Join(names[reason], ", ")))
	}
}
