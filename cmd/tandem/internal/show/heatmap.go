package show

import (
	"cmp"
	"fmt"
	"io"
	"maps"
	"math"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

// HeatRow is one event over the epochs; NaN where it was not measured.
type HeatRow struct {
	name   string
	values []float64
}

const (
	// shades go from a row's smallest value to its largest; they read without
	// colour too.
	shades = `.:-=+*#%@`
	// steady marks a row that never changed, unknown what was not measured.
	steady, unknown = '~', ' '
	// mostColumns is how many epochs fit; of more, neighbours share a column.
	mostColumns = 48
)

// HeatRows turns profiles around: one row for each event, then for each
// metric of the GPUs and the process tree, then of the machine.
func HeatRows(profiles []trial.Profile) []HeatRow {
	values := map[string][]float64{}
	order := map[string]int{}
	for at, p := range profiles {
		for rank, part := range []map[string]trial.Float{p.Events, p.Host} {
			for name, value := range part {
				if values[name] == nil {
					values[name] = slices.Repeat([]float64{math.NaN()}, len(profiles))
				}
				values[name][at] = float64(value)
				order[name] = rank
				if strings.HasPrefix(name, "machine.") {
					order[name] = 2
				}
			}
		}
	}
	var rows []HeatRow
	for _, name := range slices.Sorted(maps.Keys(values)) {
		rows = append(rows, HeatRow{name, values[name]})
	}
	slices.SortStableFunc(rows, func(a, b HeatRow) int { return cmp.Compare(order[a.name], order[b.name]) })
	return rows
}

// PrintHeatMap draws rows over columns, each row between its own extremes.
func PrintHeatMap(out io.Writer, columns []string, rows []HeatRow, coloured bool) error {
	per := (len(columns) + mostColumns - 1) / mostColumns
	title := "Per second, by epoch; each row from its lowest to its highest:"
	if per > 1 {
		title = fmt.Sprintf("Per second, each column the mean of %d epochs; each row from its lowest to its highest:", per)
	}
	fmt.Fprintf(out, "%s %s   %c: never changed   blank: not measured\n", title, shades, steady)
	var zero []string
	width := len("EPOCH")
	for _, row := range rows {
		width = max(width, len(format.Plain(row.name)))
	}
	heading := ""
	for at := 0; at < len(columns); at += per {
		heading += fmt.Sprintf(" %2.2s", columns[at])
	}
	fmt.Fprintf(out, "%-*s%s  %13s %13s\n", width, "EPOCH", heading, "LOWEST", "HIGHEST")
	for _, row := range rows {
		values := joined(row.values, per)
		low, high, known := extremes(values)
		if !known || high == 0 {
			zero = append(zero, format.Plain(row.name))
			continue
		}
		fmt.Fprintf(out, "%-*s", width, format.Plain(row.name))
		for _, value := range values {
			fmt.Fprintf(out, " %s", heatCell(value, low, high, coloured))
		}
		fmt.Fprintf(out, "  %13s %13s\n", Count(low), Count(high))
	}
	if len(zero) > 0 {
		fmt.Fprintf(out, "Always 0: %s\n", strings.Join(zero, ", "))
	}
	_, err := fmt.Fprintln(out)
	return err
}

// joined takes the means of so many neighbours each.
func joined(values []float64, per int) []float64 {
	var means []float64
	for part := range slices.Chunk(values, max(1, per)) {
		sum, n := 0.0, 0
		for _, value := range part {
			if !math.IsNaN(value) {
				sum += value
				n++
			}
		}
		if n == 0 {
			sum, n = math.NaN(), 1
		}
		means = append(means, sum/float64(n))
	}
	return means
}

func extremes(values []float64) (low, high float64, known bool) {
	low, high = math.Inf(1), math.Inf(-1)
	for _, value := range values {
		if !math.IsNaN(value) {
			low, high, known = min(low, value), max(high, value), true
		}
	}
	return low, high, known
}

// heatCell is two characters of the value's shade, on a terminal also in its
// colour: dark blue to yellow, which keeps its order for every eye.
func heatCell(value, low, high float64, coloured bool) string {
	// Of the terminal's 256 colours, by rising lightness.
	palette := [len(shades)]int{17, 18, 54, 91, 126, 161, 203, 215, 227}
	switch {
	case math.IsNaN(value):
		return strings.Repeat(string(unknown), 2)
	case high <= low:
		return strings.Repeat(string(steady), 2)
	}
	step := min(len(shades)-1, int((value-low)/(high-low)*float64(len(shades))))
	text := strings.Repeat(shades[step:step+1], 2)
	if !coloured {
		return text
	}
	ink := 15
	if step >= len(shades)-3 {
		ink = 16
	}
	return fmt.Sprintf("\x1b[38;5;%dm\x1b[48;5;%dm%s\x1b[0m", ink, palette[step], text)
}

// PrintTrialProfile draws the profiles that came with a trial's reports, if any.
func PrintTrialProfile(out io.Writer, reports []trial.Report) error {
	var columns []string
	var profiles []trial.Profile
	fraction := 1.0
	for _, report := range reports {
		if report.Profile == nil {
			continue
		}
		columns = append(columns, strconv.Itoa(report.Epoch))
		profiles = append(profiles, *report.Profile)
		if report.Profile.RunFraction > 0 {
			fraction = min(fraction, float64(report.Profile.RunFraction))
		}
	}
	if len(profiles) == 0 {
		return nil
	}
	fmt.Fprintf(out, "Profile (%s)", format.Plain(profiles[len(profiles)-1].Level))
	if fraction < 1 {
		fmt.Fprintf(out, ", scaled: events had a counter at least %.0f%% of the time, so values are estimates", 100*fraction)
	}
	fmt.Fprintln(out)
	return PrintHeatMap(out, columns, HeatRows(profiles), Coloured(out))
}

// Coloured reports whether colours reach somebody who sees them.
func Coloured(out io.Writer) bool {
	file, ok := out.(*os.File)
	return ok && term.IsTerminal(file) && os.Getenv("NO_COLOR") == ""
}

// Count is a large number with groups of three digits, a small one as
// measured.
func Count(value float64) string {
	if math.Abs(value) < 100 && value != math.Trunc(value) {
		return format.Number(trial.Float(value))
	}
	if math.Abs(value) >= 1e15 {
		return strconv.FormatFloat(value, 'g', 6, 64)
	}
	digits := strconv.FormatFloat(value, 'f', 0, 64)
	for at := len(digits) - 3; at > 0 && digits[at-1] != '-'; at -= 3 {
		digits = digits[:at] + "," + digits[at:]
	}
	return digits
}
