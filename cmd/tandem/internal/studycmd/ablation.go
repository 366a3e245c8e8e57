package studycmd

import (
	"fmt"
	"io"
	"strings"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/space"
	"github.com/tandem-tune/tandem/trial"
)

func printAblation(out io.Writer, answer protocol.Ablation) error {
	if answer.From != nil && answer.To != nil {
		fmt.Fprintf(out, "From trial %d to trial %d: %s at rung %d (%s)\n", answer.From.Trial, answer.To.Trial, format.Plain(answer.Metric), answer.Rung, format.Budget(answer.Budget))
		fmt.Fprintf(out, "Values are predicted (≈) by a surrogate made from %s; of others %s\n", format.Count(answer.Surrogate.Used, "trial"),
			strings.TrimPrefix(shownSurrogate(*answer.Surrogate), "a surrogate ")+".")
		rows := [][]string{append([]string{"start", "", ""}, shownPoint(answer.From.AblationPoint, "")...)}
		for _, step := range answer.Steps {
			share := ""
			if step.Share != nil {
				share = fmt.Sprintf("%.0f%%", 100**step.Share)
			}
			for i, change := range append(step.Switched, step.Dependent...) {
				row := []string{format.Plain(change.Parameter), shownEnd(change.From), shownEnd(change.To), "", "", "", ""}
				if i == 0 {
					row = append(row[:3], shownPoint(step.After, share)...)
				} else {
					row[0] = "  with " + row[0]
				}
				rows = append(rows, row)
			}
		}
		if err := term.Table(out, []string{"PARAMETER", "FROM", "TO", "PREDICTED", "±", "OF THE GAIN", "MEASURED"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	return printNotes(out, answer.Notes, answer.Method)
}

// shownPoint is what is known of one configuration of the path.
func shownPoint(point protocol.AblationPoint, share string) []string {
	measured := ""
	if point.Measured != nil {
		measured = fmt.Sprintf("%s (trial %d)", format.Number(point.Measured.Value), point.Measured.Trial)
	}
	return []string{"≈ " + format.Number(trial.Float(point.Predicted)), format.Number(trial.Float(point.Spread)), share, measured}
}

func shownEnd(value *space.Value) string {
	if value == nil {
		return "–"
	}
	return format.Value(*value)
}
