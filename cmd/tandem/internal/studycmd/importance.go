package studycmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// importanceFlags are the choices of "study importance"; -1 stands for none.
type importanceFlags struct {
	method          string
	objective, rung int
}

func importanceCommand(flags *term.Flags) *cobra.Command {
	var choice importanceFlags
	command := onStudy(flags, &cobra.Command{
		Use:   "importance STUDY",
		Short: "Say which parameters made the good trials good",
		Long: `Say which parameters made the good trials good, at each rung with enough trials:
each parameter's share, and how probable as large a share is if the parameter
did nothing. Above 0.05 or so it means nothing.

With --method fanova: what part of the values' variance over the whole space
comes from each parameter alone, and from pairs beyond that.`,
		Example: `  tandem study importance lenet-fashion-mnist
  tandem study importance lenet-fashion-mnist --method fanova --rung 0`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		answer, err := client.Importance(ctx, study, protocol.ImportanceQuery{Method: choice.method, Objective: choice.objective, Rung: chosen(choice.rung)})
		if err != nil {
			return err
		}
		return term.PrintAnswer(out, flags.JSON, answer, PrintImportance)
	})
	command.Flags().StringVar(&choice.method, "method", "", "ped-anova (the default) or fanova")
	term.CompleteFlag(command, "method", term.Words("ped-anova", "fanova"))
	command.Flags().IntVar(&choice.objective, "objective", 0, "the place of the objective, from 0")
	command.Flags().IntVar(&choice.rung, "rung", -1, "only this rung")
	return command
}

// chosen is a flag's number, nil for the -1 that stands for none.
func chosen(number int) *int {
	if number < 0 {
		return nil
	}
	return &number
}

// PrintImportance prints the share of each parameter at each rung.
func PrintImportance(out io.Writer, answer protocol.Importance) error {
	for _, rung := range answer.Rungs {
		if err := printRung(out, rung); err != nil {
			return err
		}
	}
	return printNotes(out, answer.Notes, answer.Method)
}

func printRung(out io.Writer, rung protocol.RungImportance) error {
	if rung.Surrogate != nil {
		fmt.Fprintf(out, "Rung %d (%s): %s, of which %s\n", rung.Rung, format.Budget(rung.Budget), format.Count(rung.Trials, "trial"), shownSurrogate(*rung.Surrogate))
	} else {
		fmt.Fprintf(out, "Rung %d (%s): the best %d of %s\n", rung.Rung, format.Budget(rung.Budget), rung.Best, format.Count(rung.Trials, "trial"))
	}
	heading, rows := []string{"PARAMETER", "SHARE", "CHANCE", ""}, make([][]string, 0, len(rung.Parameters))
	for _, p := range rung.Parameters {
		row := []string{format.Plain(p.Name), fmt.Sprintf("%.0f%%", 100*p.Share)}
		if p.Chance == nil {
			heading = []string{"PARAMETER", "SHARE", "±"}
			row = append(row, fmt.Sprintf("%.0f%%", 100*p.Spread))
		} else {
			row = append(row, fmt.Sprintf("%.3f", *p.Chance), "")
			if *p.Chance > 0.05 {
				row[3] = "may be chance"
			}
		}
		rows = append(rows, row)
	}
	for _, pair := range rung.Interactions {
		if pair.Share >= 0.005 {
			rows = append(rows, []string{format.Plain(pair.First) + " with " + format.Plain(pair.Second), fmt.Sprintf("%.0f%%", 100*pair.Share), fmt.Sprintf("%.0f%%", 100*pair.Spread)})
		}
	}
	if len(rows) > 0 {
		if err := term.Table(out, heading, rows); err != nil {
			return err
		}
	}
	_, err := fmt.Fprintln(out)
	return err
}

// shownSurrogate says what a surrogate is worth.
func shownSurrogate(s protocol.Surrogate) string {
	return fmt.Sprintf("a surrogate predicts %.0f%% of the variance", 100*max(0, s.Explained))
}

func printNotes(out io.Writer, notes []string, method string) error {
	for _, note := range notes {
		fmt.Fprintf(out, "Note: %s\n", format.Plain(note))
	}
	_, err := fmt.Fprintf(out, "Method: %s\n", format.Plain(method))
	return err
}
