package studycmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"os"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// onTrial is a command about one trial.
func onTrial(flags *term.Flags, command *cobra.Command, run func(ctx context.Context, client *rest.Client, trial trialName, out io.Writer) error) *cobra.Command {
	command.Args = term.Arguments(2, "a study and the number of a trial")
	command.RunE = flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
		number, err := strconv.Atoi(args[1])
		if err != nil || number < 0 {
			return term.Misuse("the number of a trial is 0 or more, not %q", args[1])
		}
		return run(ctx, client, trialName{args[0], number}, out)
	})
	return command
}

// trialName is a trial as the command line names it.
type trialName struct {
	study  string
	number int
}

func trialsCommand(flags *term.Flags) *cobra.Command {
	var asked protocol.TrialQuery
	command := onStudy(flags, &cobra.Command{
		Use:   "trials STUDY",
		Short: "List a study's trials, or those that a query chooses",
		Long: `List a study's trials, the best first, or those that a query chooses, in its order.

A query compares fields, such as state, number, rung, duration, parameters and
metrics. docs/queries.md has all of them.`,
		Example: `  tandem study trials lenet-fashion-mnist --where 'state = failed and lr > 0.01'
  tandem study trials lenet-fashion-mnist --where 'rung = 2 order by accuracy desc limit 5' --json`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		view, err := client.Study(ctx, study)
		if err != nil {
			return err
		}
		page, err := client.Trials(ctx, view.ID, asked)
		if err != nil {
			return err
		}
		return term.PrintAnswer(out, flags.JSON, page, func(out io.Writer, page protocol.TrialPage) error {
			return show.Leaderboard(out, view.Definition, page)
		})
	})
	command.Flags().StringVar(&asked.Query, "where", "", "a query, such as 'state = failed and lr > 0.01 order by loss desc limit 20'")
	command.Flags().IntVar(&asked.Limit, "limit", 100, "most rows, 10,000 or fewer")
	return command
}

func trialCommand(flags *term.Flags) *cobra.Command {
	return onTrial(flags, &cobra.Command{
		Use:     "trial STUDY NUMBER",
		Short:   "Show one trial: its parameters, its learning curve and its history",
		Example: `  tandem study trial lenet-fashion-mnist 14`,
	}, func(ctx context.Context, client *rest.Client, name trialName, out io.Writer) error {
		return term.Answer(out, flags.JSON, PrintTrial)(client.Trial(ctx, name.study, name.number))
	})
}

// printPlace says which GPUs the trial has, what it should use of one, and how often
// it made way.
func printPlace(out io.Writer, detail protocol.TrialDetail) {
	t := detail.Trial
	if len(t.GPUs) > 0 {
		fmt.Fprintf(out, "GPUs of its machine: %s\n", strings.Trim(fmt.Sprint(t.GPUs), "[]"))
	}
	if t.GPUShare != nil {
		fmt.Fprintf(out, "A part of that GPU: %s\n", show.GPUShare(*t.GPUShare))
	}
	if t.GPUUse != nil {
		fmt.Fprintf(out, "Seen on its GPU: %s\n", show.GPUUse(*t.GPUUse))
	}
	if t.GPUShortage != nil {
		fmt.Fprintf(out, "Ran out of GPU memory beside other trials %s, which is no failure; %s are kept for it since\n", format.Count(t.GPUShortage.Times, "time"), show.GiB(t.GPUShortage.NeedBytes))
	}
	show.PrintGPUExpected(out, detail.GPUExpected)
	if t.Preemptions > 0 {
		fmt.Fprintf(out, "Made way for others %s\n", format.Count(t.Preemptions, "time"))
	}
}

// printKey says how far its newest lease is with its key.
func printKey(out io.Writer, key *trial.Attestation) {
	if key != nil {
		fmt.Fprintf(out, "Key of lease %d: %s since %s", key.LeaseEpoch, key.State, term.FormatTime(&key.Since, ""))
		if key.Code != "" {
			fmt.Fprintf(out, ", %s", format.Plain(key.Code))
		}
		fmt.Fprintln(out)
	}
}

// printAgain says what the trial has to do with others of the same parameters.
func printAgain(out io.Writer, t protocol.RankedTrial) {
	if t.RepeatOf != nil {
		fmt.Fprintf(out, "Repeats trial %d: the same parameters, trained again with another seed\n", *t.RepeatOf)
	}
	if t.RetryOf != nil {
		fmt.Fprintf(out, "Retries trial %d, which failed, with the same parameters\n", *t.RetryOf)
	}
	if t.Repeated != nil {
		fmt.Fprintf(out, "Repeated: %s; %s\n", format.Mean(*t.Repeated, 0), shownNumbers("trials", t.Repeated.Trials))
	}
}

// PrintTrial prints one trial: its parameters, its learning curve and its history.
func PrintTrial(out io.Writer, detail protocol.TrialDetail) error {
	t := detail.Trial
	fmt.Fprintf(out, "Trial %d (%s)  %s", t.Number, t.ID, t.State)
	if t.Reason != "" {
		fmt.Fprintf(out, ": %s", show.Reason(t.Reason))
	}
	fmt.Fprintf(out, "\nRung %d: %s; trained %s in %s, %s\n", t.Rung, format.Budget(t.Budget), format.Count(t.Epochs, "epoch"), format.Seconds(float64(t.Seconds)), format.Energy(t.Energy))
	if cost := format.Cost(t.Cost); cost != "" {
		fmt.Fprintf(out, "Cost: %s\n", cost)
	}
	fmt.Fprintf(out, "Parameters (%s): %s\n", format.Plain(t.Origin), format.Parameters(t.Configuration))
	if t.Deflation != nil {
		fmt.Fprintln(out, show.DataLeftOut(t.Deflation))
	}
	printPlace(out, detail)
	printKey(out, t.Attestation)
	printAgain(out, t)
	fmt.Fprintln(out)
	metrics := map[string]bool{}
	for _, report := range detail.Reports {
		for name := range report.Metrics {
			metrics[name] = true
		}
	}
	names := slices.Sorted(maps.Keys(metrics))
	heading := []string{"RUNG", "EPOCH"}
	for _, name := range names {
		heading = append(heading, format.Plain(name))
	}
	var rows [][]string
	for _, report := range detail.Reports {
		row := []string{strconv.Itoa(report.Rung), strconv.Itoa(report.Epoch)}
		for _, name := range names {
			if value, has := report.Metrics[name]; has {
				row = append(row, format.Number(value))
			} else {
				row = append(row, "-")
			}
		}
		rows = append(rows, append(row, format.Seconds(float64(report.Seconds)), format.Plain(report.Worker)))
	}
	if err := term.Table(out, append(heading, "TIME", "WORKER"), rows); err != nil {
		return err
	}
	fmt.Fprintln(out)
	if err := show.PrintTrialSystem(out, detail); err != nil {
		return err
	}
	return printHistory(out, detail.Events)
}

// shownNumbers lists numbers of trials.
func shownNumbers(what string, numbers []int) string {
	for i, number := range numbers {
		what += []string{" ", ", "}[min(i, 1)] + strconv.Itoa(number)
	}
	return what
}

// printHistory leaves out what changes nothing, such as reports and checkpoints:
// the curve has those.
func printHistory(out io.Writer, events []protocol.Event) error {
	var rows [][]string
	for _, event := range events {
		why, _, _ := strings.Cut(event.Reason, "\n") // the log has the rest
		row := []string{event.At.Local().Format("15:04:05"), event.State, format.Plain(event.Worker), format.Plain(why)}
		same := len(rows) > 0 && slices.Equal(rows[len(rows)-1][1:3], row[1:3])
		if event.State == "" || same && event.Reason == "" {
			continue
		}
		rows = append(rows, row)
	}
	return term.Table(out, []string{"AT", "STATE", "WORKER", "WHY"}, rows)
}

func logCommand(flags *term.Flags) *cobra.Command {
	return onTrial(flags, &cobra.Command{
		Use:     "log STUDY NUMBER",
		Short:   "Print what a trial's command printed",
		Example: `  tandem study log lenet-fashion-mnist 14`,
	}, func(ctx context.Context, client *rest.Client, name trialName, out io.Writer) error {
		text, err := client.TrialLog(ctx, name.study, name.number)
		if err != nil {
			return err
		}
		if flags.JSON {
			return term.WriteJSON(out, map[string]string{"log": text})
		}
		// A terminal must not be steered by what a script printed.
		if file, ok := out.(*os.File); ok && term.IsTerminal(file) {
			text = format.Lines(text)
		}
		_, err = io.WriteString(out, text)
		return err
	})
}

func recommendCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:   "recommend STUDY",
		Short: "Print the study's answer: the best parameters and how far to trust them",
		Example: `  tandem study recommend lenet-fashion-mnist
  tandem study recommend lenet-fashion-mnist --json | jq .best.params`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		answer, err := client.Recommendation(ctx, study)
		if err != nil {
			return err
		}
		if flags.JSON {
			err = term.WriteJSON(out, answer)
		} else {
			show.PrintRecommendation(out, answer)
		}
		if err == nil && answer.Best == nil && answer.Status.Over() {
			return term.ErrNoResult
		}
		return err
	})
}

func exportCommand(flags *term.Flags) *cobra.Command {
	var form, path string
	var sampled int
	command := onStudy(flags, &cobra.Command{
		Use:   "export STUDY",
		Short: "Write a study's trials as CSV, everything of it as JSON, or a trial's samples",
		Example: `  tandem study export lenet-fashion-mnist > trials.csv
  tandem study export lenet-fashion-mnist --format json --output study.json
  tandem study export lenet-fashion-mnist --samples 14 --format openmetrics`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		switch {
		case form == "" && flags.JSON:
			form = "json"
		case form == "":
			form = "csv"
		case form != "csv" && form != "json" && (form != "openmetrics" || sampled < 0):
			return term.Misuse("--format is csv or json, or openmetrics with --samples, not %q", form)
		case form != "json" && flags.JSON:
			return term.Misuse("--json asks for JSON and --format for %s: give one of them", form)
		}
		get := client.Export
		if sampled >= 0 {
			get = func(ctx context.Context, study, form string) (io.ReadCloser, error) {
				return client.TrialSamples(ctx, study, sampled, form)
			}
		}
		answer, err := get(ctx, study, form)
		if err != nil {
			return err
		}
		defer answer.Close()
		if path == "" {
			_, err = io.Copy(out, answer)
			return err
		}
		moved := term.NewTransfer(os.Stderr, "Downloading "+format.Plain(study), 0)
		defer moved.End()
		return files.Write(path, moved.Reader(answer), 0o600)
	})
	command.Flags().StringVar(&form, "format", "", "csv or json, or openmetrics with --samples (default csv; json with --json)")
	term.CompleteFlag(command, "format", term.Words("csv", "json", "openmetrics"))
	command.Flags().IntVar(&sampled, "samples", -1, "write what was sampled of the trial with this number about once a second (docs/profiling.md)")
	command.Flags().StringVarP(&path, "output", "o", "", "file to write; standard output when empty")
	return command
}
