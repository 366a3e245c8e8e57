package main

import (
	"fmt"
	"io"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
)

func planCommand(flags *studyFlags) *cobra.Command {
	return &cobra.Command{
		Use:   "plan FILE",
		Short: "Check a study file and print what the study will do",
		Long: `Check a study file and print what the study will do: how many trials start on
each rung, how many go up, the epochs and the passes over the data, and what the
same trials would take without a ladder. Nothing is created; no server is
needed. What an epoch takes in seconds and joules is not known before the first
one was trained.`,
		Example: `  tandem study plan study.yaml
  tandem study plan study.yaml --json | jq .epochs`,
		Args: arguments(1, "the path of a study file"),
		RunE: func(command *cobra.Command, args []string) error {
			def, err := readStudyFile(command.Context(), args[0], command.InOrStdin())
			if err != nil {
				return err
			}
			plan := study.PlanOf(def)
			if flags.json {
				return writeJSON(command.OutOrStdout(), plan)
			}
			return printPlan(command.OutOrStdout(), def, plan)
		},
	}
}

// printPlan prints what a study is expected to do.
func printPlan(out io.Writer, def definition.Definition, plan budget.Plan) error {
	fmt.Fprintf(out, "%s: %s search, promotion: %s, %s\n", plainText(def.Name), def.Search.Methods(), def.Search.Promotion, count(len(plan.Stages), "rung"))
	if def.Directory != "" {
		fmt.Fprintf(out, "Runs %q in %s\n", def.Command, filepath.Clean(def.Directory))
	}
	rows := make([][]string, 0, len(plan.Stages))
	for _, stage := range plan.Stages {
		rows = append(rows, []string{
			strconv.Itoa(stage.Index), shownBudget(stage.Budget), strconv.Itoa(stage.Started), strconv.Itoa(stage.Promoted),
			strconv.Itoa(stage.Epochs), fmt.Sprintf("%.1f", stage.DataPasses),
		})
	}
	if err := table(out, []string{"RUNG", "BUDGET", "STARTED", "PROMOTED", "EPOCHS", "DATA PASSES"}, rows); err != nil {
		return err
	}
	if plan.Trials == 0 {
		_, err := fmt.Fprintln(out, "Nothing bounds the number of trials, so the work cannot be counted beforehand.")
		return err
	}
	expected := "Expected"
	if plan.UpperBound {
		expected = "At most, as " + string(def.Search.EarlyStopping.Rule) + " early stopping ends trials before their budget"
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s, %.1f data passes; the same trials at full budget: %s, %.1f data passes\n",
		expected, count(plan.Trials, "trial"), count(plan.Epochs, "epoch"), plan.DataPasses, count(plan.FullEpochs, "epoch"), plan.FullDataPasses)
	return err
}
