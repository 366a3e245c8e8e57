package poolcmd

import (
	"context"
	"fmt"
	"io"
	"slices"
	"strconv"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func forecastCommand(server *term.Connection) *cobra.Command {
	var watching, asJSON bool
	var minutes int
	command := &cobra.Command{
		Use:   "forecast",
		Short: "Show how many GPUs trials hold and wait for, and how many they will",
		Long: `Show how many GPUs (trial slots, where no worker has one) trials hold and wait
for, and how many they will in the next five minutes, with how sure that is, and
how far earlier forecasts held. All of what lies ahead is an estimate; how it is
made is in docs/forecasting.md. A user's token shows that user's demand.`,
		Example: `  tandem pool forecast
  tandem pool forecast --minutes 1440 --json`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			return term.Answer[protocol.PoolForecast]{
				JSON: asJSON, Watch: watching, Print: printForecast,
				Ask: func(ctx context.Context, client *rest.Client) (protocol.PoolForecast, error) {
					return client.PoolForecast(ctx, minutes)
				},
			}.Show(command, server)
		},
	}
	command.Flags().IntVar(&minutes, "minutes", 60, "how far back the demand is told, in minutes: at most 40320")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	term.AddWatchFlag(command, &watching)
	return command
}

// shownQuantiles are those that a terminal has room for.
var shownQuantiles = []float64{0.1, 0.5, 0.9, 0.95, 0.99}

// gpus is a number of GPUs, with a decimal where it has one.
func gpus(number float64) string {
	return strconv.FormatFloat(float64(int(number*10+0.5))/10, 'f', -1, 64)
}

func printForecast(out io.Writer, told protocol.PoolForecast) error {
	whose := "All trials"
	if told.Owner != "" {
		whose = "Trials of " + format.Plain(told.Owner)
	}
	if len(told.Minutes) == 0 {
		fmt.Fprintf(out, "Nothing is recorded of the last while: %s\n", format.Plain(told.Reason))
		return nil
	}
	newest := told.Minutes[len(told.Minutes)-1]
	fmt.Fprintf(out, "%s, at %s: %s %s held, %s waited for, %s there\n", whose, newest.At.Local().Format("15:04"), gpus(newest.Running), told.Unit, gpus(newest.Waiting), gpus(newest.Capacity))
	for _, one := range told.Users {
		fmt.Fprintf(out, "  %s: %s held, %s waited for\n", format.Plain(one.Owner), gpus(one.Running), gpus(one.Waiting))
	}
	for _, gap := range told.Gaps {
		fmt.Fprintf(out, "  nobody looked from %s to %s\n", gap.Begin.Local().Format("2006-01-02 15:04"), gap.End.Local().Format("15:04"))
	}
	if len(told.Ahead) == 0 {
		fmt.Fprintf(out, "\nNo forecast yet: %s\n", format.Plain(told.Reason))
		return nil
	}
	fmt.Fprintf(out, "\nEstimate by %s, %s wanted:\n\n", told.Method, told.Unit)
	if err := printAhead(out, told); err != nil {
		return err
	}
	printLearned(out, told)
	return printHeld(out, told)
}

// printAhead shows the next minutes.
func printAhead(out io.Writer, told protocol.PoolForecast) error {
	heading := []string{"MINUTE"}
	for _, quantile := range shownQuantiles {
		heading = append(heading, fmt.Sprintf("AT %g%%", 100*quantile))
	}
	var rows [][]string
	for _, one := range told.Ahead {
		row := []string{one.At.Local().Format("15:04")}
		for _, quantile := range shownQuantiles {
			row = append(row, gpus(one.Demand[slices.Index(told.Quantiles, quantile)]))
		}
		rows = append(rows, row)
	}
	return term.Table(out, heading, rows)
}

func printLearned(out io.Writer, told protocol.PoolForecast) {
	if told.Reason != "" {
		fmt.Fprintf(out, "\n%s is used: %s\n", told.Method, format.Plain(told.Reason))
	}
	if told.Learned == nil {
		return
	}
	fmt.Fprintf(out, "\nLearned at %s from %d minutes in %s", told.Learned.At.Local().Format(time.DateTime), told.Learned.Minutes, format.Seconds(told.Learned.Seconds))
	if told.Learned.JudgedOn > 0 {
		fmt.Fprintf(out, "; compared on the %d minutes behind them (pinball loss, the least is the best):", told.Learned.JudgedOn)
	}
	fmt.Fprintln(out)
	for _, one := range told.Learned.Tried {
		switch {
		case one.Pinball != nil:
			fmt.Fprintf(out, "  %s: %.3f\n", one.Method, *one.Pinball)
		case one.Reason != "":
			fmt.Fprintf(out, "  %s: %s\n", one.Method, format.Plain(one.Reason))
		}
	}
}

// printHeld shows how far what was foretold held.
func printHeld(out io.Writer, told protocol.PoolForecast) error {
	if told.Calibration == nil {
		return nil
	}
	fmt.Fprintf(out, "\nOf the last day, %s had been foretold five minutes before: %s\n\n", format.Count(told.Calibration.Minutes, "minute"), shownTrust(told))
	var rows [][]string
	for _, quantile := range shownQuantiles {
		at := slices.Index(told.Quantiles, quantile)
		rows = append(rows, []string{fmt.Sprintf("%g%%", 100*quantile), fmt.Sprintf("%.1f%% to %.1f%%", 100*told.Calibration.CoveredLeast[at], 100*told.Calibration.CoveredMost[at]), told.Calibration.Verdicts[at]})
	}
	return term.Table(out, []string{"AT MOST SO MUCH WAS TO COME IN", "AND CAME IN", "SO IT"}, rows)
}

// shownTrust says what may be made of forecasts, from how earlier ones held.
func shownTrust(told protocol.PoolForecast) string {
	above := fmt.Sprintf("the demand was above what was told with 90%% in %.1f%% of them", 100*(1-told.Calibration.Covered[slices.Index(told.Quantiles, 0.9)]))
	switch told.Calibration.Trust {
	case "good":
		return "all quantiles hold, as far as chance allows a verdict."
	case "optimistic":
		return "high quantiles are too low, and more is wanted than is told (" + above + "): ask for a higher performance, or keep more awake."
	case "cautious":
		return "high quantiles are too high, and less is wanted than is told (" + above + "): nobody waits for that, but less is saved than could be."
	case "uneven":
		return "the high quantiles, which GPUs are kept awake for, hold; lower ones do not."
	}
	return "too few for a verdict."
}
