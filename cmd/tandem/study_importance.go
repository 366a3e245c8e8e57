package main

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/protocol"
)

func importanceCommand(flags *studyFlags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:   "importance STUDY",
		Short: "Say which parameters made the good trials good",
		Long: `Say which parameters made the good trials good, at each rung with enough trials:
each parameter's share, and how probable as large a share is if the parameter
did nothing. Above 0.05 or so it means nothing.`,
		Example: `  tandem study importance lenet-fashion-mnist`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		answer, err := client.Importance(ctx, study)
		if err != nil {
			return err
		}
		if flags.json {
			return writeJSON(out, answer)
		}
		return printImportance(out, answer)
	})
}

func printImportance(out io.Writer, answer protocol.Importance) error {
	for _, rung := range answer.Rungs {
		fmt.Fprintf(out, "Rung %d (%s): the best %d of %s\n", rung.Rung, shownBudget(rung.Budget), rung.Best, count(rung.Trials, "trial"))
		rows := make([][]string, 0, len(rung.Parameters))
		for _, p := range rung.Parameters {
			verdict := ""
			if p.Chance > 0.05 {
				verdict = "may be chance"
			}
			rows = append(rows, []string{plainText(p.Name), fmt.Sprintf("%.0f%%", 100*p.Share), fmt.Sprintf("%.3f", p.Chance), verdict})
		}
		if err := table(out, []string{"PARAMETER", "SHARE", "CHANCE", ""}, rows); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(out, "Note: %s\n", plainText(note))
	}
	_, err := fmt.Fprintf(out, "Method: %s\n", plainText(answer.Method))
	return err
}
