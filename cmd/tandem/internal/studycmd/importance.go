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

func importanceCommand(flags *term.Flags) *cobra.Command {
	var objective, rung int
	command := onStudy(flags, &cobra.Command{
		Use:   "importance STUDY",
		Short: "Say which parameters made the good trials good",
		Long: `Say which parameters made the good trials good, at each rung with enough trials:
each parameter's share, and how probable as large a share is if the parameter
did nothing. Above 0.05 or so it means nothing.`,
		Example: `  tandem study importance lenet-fashion-mnist
  tandem study importance lenet-fashion-mnist --rung 0`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		return term.Answer(out, flags.JSON, PrintImportance)(client.Importance(ctx, study, protocol.ImportanceQuery{Objective: objective, Rung: chosen(rung)}))
	})
	command.Flags().IntVar(&objective, "objective", 0, "the place of the objective, from 0")
	command.Flags().IntVar(&rung, "rung", -1, "only this rung")
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
	fmt.Fprintf(out, "Rung %d (%s): the best %d of %s\n", rung.Rung, format.Budget(rung.Budget), rung.Best, format.Count(rung.Trials, "trial"))
	err := term.Rows(out, rung.Parameters, "No parameter differs", []string{"PARAMETER", "SHARE", "CHANCE", ""}, func(p protocol.ParameterImportance) []string {
		note := ""
		if p.Chance > 0.05 {
			note = "may be chance"
		}
		return []string{format.Plain(p.Name), fmt.Sprintf("%.0f%%", 100*p.Share), fmt.Sprintf("%.3f", p.Chance), note}
	})
	fmt.Fprintln(out)
	return err
}

func printNotes(out io.Writer, notes []string, method string) error {
	for _, note := range notes {
		fmt.Fprintf(out, "Note: %s\n", format.Plain(note))
	}
	_, err := fmt.Fprintf(out, "Method: %s\n", format.Plain(method))
	return err
}
