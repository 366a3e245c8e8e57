package studycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/study/comparison"
	"github.com/tandem-tune/tandem/trial"
)

func diffCommand(flags *term.Flags) *cobra.Command {
	var code bool
	command := &cobra.Command{
		Use:   "diff A B",
		Short: "Say how two studies differ: definitions, results and winners",
		Long: `Say how two studies differ: what stands differently in their definitions, by
path; what came of each (best value, time, energy, epochs); and the parameters
of both recommended trials.

The exit code is 0 whether they differ or not; with --exit-code it is 5 where
their definitions differ in more than the name.`,
		Example: `  tandem study diff lenet-bohb lenet-random
  tandem study diff lenet-bohb lenet-random --json | jq '.definition[].path'
  tandem study diff nightly-1 nightly-2 --exit-code > /dev/null || echo "not the same study"`,
		Args:              term.Arguments(2, "the names or the ids of two studies"),
		ValidArgsFunction: completeStudies(&flags.Server, 2),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			var sides [2]comparison.Side
			for i, name := range args {
				var err error
				if sides[i], err = sideOf(ctx, client, name); err != nil {
					return err
				}
			}
			found, err := comparison.Compare(sides[0], sides[1])
			if err != nil {
				return err
			}
			if err := term.PrintAnswer(out, flags.JSON, found, printDifference); err != nil {
				return err
			}
			if code && len(found.Definition) > 0 {
				return term.ErrDiffers
			}
			return nil
		}),
	}
	command.Flags().BoolVar(&code, "exit-code", false, "end with the exit code 5 where the definitions differ")
	return command
}

func sideOf(ctx context.Context, client *rest.Client, name string) (comparison.Side, error) {
	view, err := client.Study(ctx, name)
	if err != nil {
		return comparison.Side{}, err
	}
	answer, err := client.Recommendation(ctx, view.ID)
	return comparison.Side{Study: view, Recommendation: answer}, err
}

func printDifference(out io.Writer, d comparison.Difference) error {
	a, b := format.Plain(d.A), format.Plain(d.B)
	if len(d.Definition) == 0 {
		fmt.Fprintln(out, "The definitions are the same but for the name.")
	} else if err := term.Table(out, []string{"DEFINITION", a, b}, shownChanges(d.Definition)); err != nil {
		return err
	}
	fmt.Fprintln(out)
	var rows [][]string
	for _, one := range d.Results {
		change := ""
		if percent, known := one.Percent(); known {
			change = fmt.Sprintf("%+.1f%%", percent)
		}
		rows = append(rows, []string{format.Plain(one.Name), shownResult(one, one.A, one.EstimateA), shownResult(one, one.B, one.EstimateB), change})
	}
	if err := term.Table(out, []string{"RESULT", a, b, "CHANGE"}, rows); err != nil {
		return err
	}
	if len(d.Winner) > 0 {
		fmt.Fprintln(out)
		if err := term.Table(out, []string{"RECOMMENDED", a, b, ""}, shownWinners(d.Winner)); err != nil {
			return err
		}
	}
	for _, note := range d.Notes {
		fmt.Fprintf(out, "Note: %s\n", format.Plain(note))
	}
	return nil
}

func shownChanges(list []comparison.Change) [][]string {
	rows := make([][]string, 0, len(list))
	for _, one := range list {
		rows = append(rows, []string{format.Plain(one.Path), shownJSON(one.A), shownJSON(one.B)})
	}
	return rows
}

func shownWinners(list []comparison.Change) [][]string {
	rows := shownChanges(list)
	for i, one := range list {
		mark := ""
		if one.Differs() {
			mark = "differs"
		}
		rows[i] = append(rows[i], mark)
	}
	return rows
}

// shownJSON is a value as people write it; absent: -.
func shownJSON(value json.RawMessage) string {
	var text string
	switch {
	case string(value) == "null":
		return "-"
	case json.Unmarshal(value, &text) == nil:
		return format.Plain(text)
	}
	return format.Plain(string(value))
}

func shownResult(one comparison.Result, value *trial.Float, estimate bool) string {
	if value == nil {
		return "-"
	}
	said := format.Number(*value)
	switch one.Unit {
	case "s":
		said = format.Seconds(float64(*value))
	case "J":
		method := "as reported"
		if estimate {
			method = "estimate"
		}
		return format.Energy(trial.Energy{Joules: *value, Method: method})
	}
	if estimate {
		said += " (estimate)"
	}
	return said
}
