package comparecmd

import (
	"fmt"
	"io"
	"math"
	"strconv"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
)

// print prints the answer for people.
func print(out io.Writer, answer comparison) error {
	heading := []string{"STUDY", format.Plain(answer.Metric), "MEASURED", "FAILED", "TIME", "ENERGY"}
	if answer.Target != nil {
		fmt.Fprintf(out, "Target: %s %s (%s)\n\n", format.Plain(answer.Metric), format.Number(answer.Target.Value), answer.Target.From)
		heading = append(heading, "TIME TO TARGET", "ENERGY TO TARGET", "TRIAL")
	}
	var rows [][]string
	for _, one := range answer.Studies {
		best := "nothing measured"
		if one.Best != nil {
			best = format.BestValue(*one.Best)
		}
		row := []string{format.Plain(one.Study), best, strconv.Itoa(one.Measured), strconv.Itoa(one.Failed), format.Seconds(float64(one.Seconds)), format.Energy(one.Energy)}
		switch {
		case answer.Target == nil:
		case one.Reached == nil:
			row = append(row, "not reached", "not reached", "-")
		case math.IsNaN(float64(one.Reached.Seconds)):
			row = append(row, "not known", "not known", strconv.Itoa(one.Reached.Trial))
		default:
			row = append(row, format.Seconds(float64(one.Reached.Seconds)), format.Energy(one.Reached.Energy), strconv.Itoa(one.Reached.Trial))
		}
		rows = append(rows, row)
	}
	if err := term.Table(out, heading, rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	for _, one := range answer.Differences {
		fmt.Fprintln(out, format.Plain(one.Said))
	}
	for _, note := range answer.Notes {
		fmt.Fprintln(out, "Note: "+format.Plain(note))
	}
	return nil
}
