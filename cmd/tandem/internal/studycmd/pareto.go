package studycmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

func paretoCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:   "pareto STUDY",
		Short: "Show the trials that no other beats in all objectives",
		Long: `Show the Pareto front of a study with several objectives: the trials that no
other beats in all of them, the best compromise first, and the hypervolume
between the front and the reference point.`,
		Example: `  tandem study pareto small-and-accurate
  tandem study pareto small-and-accurate --json | jq .hypervolume`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		answer, err := client.Pareto(ctx, study)
		if err != nil {
			return err
		}
		return term.PrintAnswer(out, flags.JSON, answer, printPareto)
	})
}

func printPareto(out io.Writer, answer protocol.Pareto) error {
	if len(answer.Trials) > 0 {
		fmt.Fprintf(out, "Rung %d (%s): %d of %s on the front\n", answer.Rung, format.Budget(answer.Budget), len(answer.Trials), format.Count(answer.Measured, "trial"))
		names := map[string]bool{}
		for _, t := range answer.Trials {
			for name := range t.Params {
				names[name] = true
			}
		}
		parameters := slices.Sorted(maps.Keys(names))
		heading := []string{"RANK", "TRIAL"}
		for _, one := range answer.Objectives {
			heading = append(heading, format.Plain(one.Name))
		}
		for _, name := range parameters {
			heading = append(heading, format.Plain(name))
		}
		rows := make([][]string, 0, len(answer.Trials))
		for _, t := range answer.Trials {
			row := []string{strconv.Itoa(t.Rank), strconv.Itoa(t.Number)}
			for _, value := range t.Values {
				row = append(row, format.Number(value))
			}
			rows = append(rows, append(row, show.Configuration(t.Params, parameters)...))
		}
		if err := term.Table(out, heading, rows); err != nil {
			return err
		}
	}
	if answer.Why != "" {
		fmt.Fprintf(out, "Best compromise: %s\n", format.Plain(answer.Why))
	}
	if answer.Hypervolume != nil {
		fmt.Fprintf(out, "Hypervolume: %s, measured from %s\n", format.Number(trial.Float(*answer.Hypervolume)), shownReference(answer.Objectives))
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(out, "Note: %s\n", format.Plain(note))
	}
	return nil
}

// shownReference is the point a hypervolume is measured from.
func shownReference(objectives []protocol.ParetoObjective) string {
	var parts []string
	for _, one := range objectives {
		if one.Reference == nil {
			continue
		}
		source := " (the worst so far)"
		if one.Given {
			source = ""
		}
		parts = append(parts, format.Plain(one.Name)+" "+format.Number(trial.Float(*one.Reference))+source)
	}
	return strings.Join(parts, ", ")
}
