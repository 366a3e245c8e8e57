package studycmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/budget"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/study"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/trial"
)

// pacing is what the plan's flags tell of the costs.
type pacing struct {
	pace    budget.Pace
	like    string
	workers int
}

func planCommand(flags *term.Flags) *cobra.Command {
	var told pacing
	command := &cobra.Command{
		Use:   "plan FILE",
		Short: "Check a study file and print what the study will do",
		Long: `Check a study file and print what the study will do: how many trials start on
each rung, how many go up, the epochs and the passes over the data, and what the
same trials would take without a ladder. Nothing is created; no server is
needed, unless an earlier study is to tell what training takes (--like). What it
takes is an estimate: every pass over the data counts alike.`,
		Example: `  tandem study plan study.yaml
  tandem study plan study.yaml --epoch-seconds 12 --epoch-joules 300 --workers 4
  tandem study plan study.yaml --like lenet-fashion-mnist
  tandem study plan study.yaml --json | jq .epochs`,
		Args: term.Arguments(1, "the path of a study file"),
		RunE: func(command *cobra.Command, args []string) error {
			def, err := ReadFile(command.Context(), args[0], command.InOrStdin())
			if err != nil {
				return err
			}
			pace, err := told.known(command.Context(), flags)
			if err != nil {
				return err
			}
			if err := doubt(command, flags, args[0], def); err != nil {
				return err
			}
			plan := def.Plan()
			plan.Costs = plan.Cost(pace, told.workers)
			if flags.JSON {
				return term.WriteJSON(command.OutOrStdout(), plan)
			}
			return PrintPlan(command.OutOrStdout(), def, plan)
		},
	}
	command.Flags().Float64Var(&told.pace.Seconds, "epoch-seconds", 0, "what an epoch over all of the data takes, in seconds")
	command.Flags().Float64Var(&told.pace.Joules, "epoch-joules", 0, "what it takes in joules")
	command.Flags().StringVar(&told.like, "like", "", "an earlier study on the server, whose measured pace to take")
	command.Flags().IntVar(&told.workers, "workers", 1, "how many trials are trained at once")
	return command
}

// doubt warns of what the study may not find when it is created: its script, and the
// studies that it begins with. The error is about one that the named server lacks.
func doubt(command *cobra.Command, flags *term.Flags, path string, def definition.Definition) error {
	placed, err := InFolderOf(path, def)
	if err != nil {
		return err
	}
	if missing := MissingFile(placed); missing != "" {
		fmt.Fprintf(command.ErrOrStderr(), "Warning: %s (workers elsewhere may have it)\n", format.Plain(missing))
	}
	for _, name := range def.NeedsReported(def.Names()) {
		if strings.HasPrefix(name, "edge.") {
			fmt.Fprintf(command.ErrOrStderr(), "Warning: the script has to report %s: with a section inference, the server knows it (docs/edge.md)\n", format.Plain(name))
		}
	}
	if def.Search.WarmStart == nil {
		return nil
	}
	ctx, cancel := context.WithTimeout(command.Context(), 2*time.Second)
	defer cancel()
	client, err := flags.Server.Open()
	for i, earlier := range def.Search.WarmStart.Studies {
		if err == nil {
			_, err = client.Study(ctx, earlier)
		}
		if err != nil {
			err = fmt.Errorf("search.warm_start.studies[%d] (%s on %s): %w", i, earlier, flags.Server.URL, err)
			if problem.Is(err, problem.NotFound) && (command.Flags().Changed("server") || os.Getenv("TANDEM_SERVER") != "") {
				return term.Misuse("%w", err)
			}
			fmt.Fprintf(command.ErrOrStderr(), "Warning: %s\n", format.Plain(err.Error()))
			return nil
		}
	}
	return nil
}

// known is the pace as given, or as an earlier study had it.
func (p pacing) known(ctx context.Context, flags *term.Flags) (budget.Pace, error) {
	pace := p.pace
	if pace.Seconds < 0 || pace.Joules < 0 || p.workers < 1 {
		return pace, term.Misuse("--epoch-seconds and --epoch-joules must not be negative, and --workers must be at least 1")
	}
	if p.like == "" {
		pace.Source = "was given"
		return pace, nil
	}
	if pace.Seconds > 0 || pace.Joules > 0 {
		return pace, term.Misuse("--like takes the pace from a study: leave out --epoch-seconds and --epoch-joules")
	}
	client, err := flags.Server.Open()
	if err != nil {
		return pace, err
	}
	view, err := client.Study(ctx, p.like)
	if err != nil {
		return pace, err
	}
	return study.PaceOf(view)
}

// PrintPlan prints what a study is expected to do.
func PrintPlan(out io.Writer, def definition.Definition, plan budget.Plan) error {
	fmt.Fprintf(out, "%s: %s search, promotion: %s, %s\n", format.Plain(def.Name), def.Search.Method, def.Search.Promotion, format.Count(len(plan.Stages), "rung"))
	if def.Directory != "" {
		fmt.Fprintf(out, "Runs %q in %s\n", def.Programs(), filepath.Clean(def.Directory))
	}
	for _, sentence := range plan.System {
		fmt.Fprintln(out, sentence)
	}
	if expects := def.Space.Expects(); expects != "" {
		fmt.Fprintf(out, "Expects %s: tried first, then trusted as far as own results agree\n", format.Plain(expects))
	}
	measured := plan.Stages[0].Budget.Measured()
	rows := make([][]string, 0, len(plan.Stages))
	for _, stage := range plan.Stages {
		rows = append(rows, []string{
			strconv.Itoa(stage.Index), format.Budget(stage.Budget), strconv.Itoa(stage.Started), strconv.Itoa(stage.Promoted),
			strconv.Itoa(stage.Epochs), fmt.Sprintf("%.1f", stage.DataPasses),
		})
		if measured {
			last := len(rows) - 1
			rows[last] = append(rows[last][:4], shownAmount(stage.Seconds, stage.Joules))
		}
	}
	heading := []string{"RUNG", "BUDGET", "STARTED", "PROMOTED", "EPOCHS", "DATA PASSES"}
	if measured {
		heading = append(heading[:4], "TRAINING")
	}
	if err := term.Table(out, heading, rows); err != nil {
		return err
	}
	if plan.Trials == 0 {
		_, err := fmt.Fprintln(out, "Nothing bounds the number of trials, so the work cannot be counted beforehand.")
		return err
	}
	if plan.Repeats > 0 {
		fmt.Fprintf(out, "Then the best are trained again: %s of %s each\n", format.Count(plan.Repeats, "repeat"), format.Budget(plan.Stages[len(plan.Stages)-1].Budget))
	}
	expected := "Expected"
	if plan.UpperBound {
		expected = "At most, as " + string(def.Search.EarlyStopping.Rule) + " early stopping ends trials before their budget"
	}
	if plan.Repeats > 0 {
		expected += ", with the repeats"
	}
	work, full := fmt.Sprintf("%s, %.1f data passes", format.Count(plan.Epochs, "epoch"), plan.DataPasses), fmt.Sprintf("%s, %.1f data passes", format.Count(plan.FullEpochs, "epoch"), plan.FullDataPasses)
	if plan.MostPasses > 0 {
		work += fmt.Sprintf(" (four of five studies make %.0f to %.0f)", plan.FewestPasses, plan.MostPasses)
	}
	if top := plan.Stages[len(plan.Stages)-1].Budget; measured {
		work = shownAmount(plan.Seconds, plan.Joules) + " of training"
		full = shownAmount(float64(plan.Trials)*top.Seconds, float64(plan.Trials)*top.Joules) + " of training"
	}
	_, err := fmt.Fprintf(out, "%s: %s, %s; the same trials at full budget: %s\n", expected, format.Count(plan.Trials, "trial"), work, full)
	printCostsOf(out, plan)
	return err
}

// shownAmount is a measured budget's seconds or joules.
func shownAmount(seconds, joules float64) string {
	if joules > 0 {
		return format.Energy(trial.Energy{Joules: trial.Float(joules), Method: "budget"})
	}
	return format.Seconds(seconds)
}

// printCostsOf prints what the plan is expected to take, if that is known.
func printCostsOf(out io.Writer, plan budget.Plan) {
	costs := plan.Costs
	if costs == nil {
		return
	}
	var parts []string
	if costs.TrialSeconds > 0 {
		parts = append(parts, format.Seconds(costs.TrialSeconds)+" of training, at least "+format.Seconds(costs.ElapsedSeconds)+" with "+format.Count(costs.Workers, "worker"))
	}
	if costs.Joules > 0 {
		parts = append(parts, shownAmount(0, costs.Joules))
	}
	fmt.Fprintf(out, "Estimated: %s (%s)\n", strings.Join(parts, ", "), format.Plain(costs.Method))
}
