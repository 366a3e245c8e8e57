package show

import (
	"fmt"
	"io"
	"maps"
	"slices"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

// PrintTrialProfile prints between what the profiles of a trial's epochs lie; nothing
// where no report has one. The trial's page draws each epoch.
func PrintTrialProfile(out io.Writer, reports []trial.Report) error {
	level, fraction, values := "", 1.0, map[string][]float64{}
	for _, report := range reports {
		p := report.Profile
		if p == nil {
			continue
		}
		level = p.Level
		if p.RunFraction > 0 {
			fraction = min(fraction, float64(p.RunFraction))
		}
		for _, part := range []map[string]trial.Float{p.Events, p.Host} {
			for name, value := range part {
				values[name] = append(values[name], float64(value))
			}
		}
	}
	if len(values) == 0 {
		return nil
	}
	fmt.Fprintf(out, "Profile (%s)", format.Plain(level))
	if fraction < 1 {
		fmt.Fprintf(out, ", scaled: events had a counter at least %.0f%% of the time, so values are estimates", 100*fraction)
	}
	fmt.Fprintln(out)
	var rows [][]string
	for _, name := range slices.Sorted(maps.Keys(values)) {
		rows = append(rows, []string{format.Plain(name), Count(slices.Min(values[name])), Count(slices.Max(values[name]))})
	}
	if err := term.Table(out, []string{"PER SECOND, OF EACH EPOCH", "LOWEST", "HIGHEST"}, rows); err != nil {
		return err
	}
	_, err := fmt.Fprintln(out)
	return err
}
