package edgecmd

import (
	"cmp"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	emu "github.com/tandem-tune/tandem/inference_emu"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
	"github.com/tandem-tune/tandem/internal/format"
)

func printEdgeRun(out io.Writer, answer edgeRun) error {
	rows := make([][]string, 0, len(answer.Cells))
	for _, m := range answer.Cells {
		l := m.Latency
		rows = append(rows, []string{
			cmp.Or(m.Provider, emu.CPU), strconv.Itoa(m.Batch), strconv.Itoa(m.Threads), strconv.Itoa(len(m.CoreNumbers)),
			show.Span(l.P50), show.Span(l.P90), show.Span(l.P99),
			fmt.Sprintf("%s to %s", show.Span(l.MedianLow), show.Span(l.MedianHigh)), strconv.Itoa(m.Runs),
			fmt.Sprintf("%.5g", m.SamplesPerSecond), shownJoules(m), fmt.Sprintf("%.1f MiB", float64(m.PeakBeyondLibraryBytes)/(1<<20)),
		})
	}
	heading := []string{"PROVIDER", "BATCH", "THREADS", "CORES", "P50", "P90", "P99", "P50 95%", "RUNS", "SAMPLES/S", "J/SAMPLE", "MEMORY"}
	if err := term.Table(out, heading, rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, line := range edgeRunNotes(answer) {
		fmt.Fprintln(out, format.Plain(line))
	}
	return nil
}

func shownJoules(m emulator.Measurement) string {
	text := fmt.Sprintf("%.3g", m.JoulesPerSample)
	if strings.HasPrefix(m.EnergyMethod, "estimate") {
		return text + " (estimate)"
	}
	return text
}

// edgeRunNotes say what the numbers are of and what held the model.
func edgeRunNotes(answer edgeRun) []string {
	e, first := answer.Environment, answer.Cells[0]
	var inputs []string
	for _, one := range first.Inputs {
		inputs = append(inputs, fmt.Sprintf("%s %s%v", one.Name, one.Type, one.Shape))
	}
	notes := []string{
		fmt.Sprintf("ONNX Runtime %s on %s, %s allowed; frequency %s", e.Runtime, cmp.Or(e.CPUModel, "a processor without a name"), format.Count(e.AllowedCores, "core"), shownFrequency(first.Frequency)),
		"Inputs of the first row: " + strings.Join(inputs, ", ") + ", made up.",
		"Energy: " + first.EnergyMethod + ".",
		fmt.Sprintf("MEMORY is the peak beyond the %.1f MiB of the loaded library, of at most %s.", float64(e.LibraryBytes)/(1<<20), byteSize(e.MemoryLimitBytes)),
	}
	for _, assumed := range first.Assumed {
		notes = append(notes, "Note: "+assumed+": --dimension sets it.")
	}
	vague, preempted := 0, int64(0)
	for _, m := range answer.Cells {
		if !m.Precise {
			vague++
		}
		preempted += m.Preempted
	}
	if vague > 0 {
		notes = append(notes, fmt.Sprintf("Note: in %s the time was up before the median was as exact as asked: --seconds allows more.", format.Count(vague, "row")))
	}
	if preempted > 0 {
		notes = append(notes, fmt.Sprintf("Note: other work took a core from the model %s: times may be too long.", format.Count(int(preempted), "time")))
	}
	return append(notes, "Held by: "+shownLayers(e.Layers))
}

func shownFrequency(f emulator.Frequency) string {
	if f.Reason != "" {
		return "not known: " + f.Reason
	}
	return fmt.Sprintf("%.2f to %.2f GHz when the first row ended, governor %s", f.LowHertz/1e9, f.HighHertz/1e9, cmp.Or(f.Governor, "not known"))
}

func shownLayers(layers []emulator.Layer) string {
	var shown []string
	for _, layer := range layers {
		if layer.Active {
			shown = append(shown, layer.Name)
		} else {
			shown = append(shown, "no "+layer.Name+" ("+layer.Detail+")")
		}
	}
	return strings.Join(shown, ", ") + "."
}
