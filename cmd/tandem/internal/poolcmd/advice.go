package poolcmd

import (
	"context"
	"fmt"
	"io"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// adviceFlags say what the pool has to serve.
type adviceFlags struct {
	query protocol.PoolAdviceQuery
}

func (f *adviceFlags) add(command *cobra.Command) {
	command.Flags().Float64Var(&f.query.Performance, "performance", 0, "share of the demand that is to find a GPU awake, above 0 and at most 1; 0: what the server was started with")
	command.Flags().IntVar(&f.query.Least, "least", 0, "how many GPUs stay awake whatever is forecast")
}

// check refuses what the server would.
func (f *adviceFlags) check() error {
	if !(f.query.Performance >= 0 && f.query.Performance <= 1) || f.query.Least < 0 {
		return term.Misuse("--performance (%g) must be from 0 to 1, such as 0.98, and --least (%d) not negative", f.query.Performance, f.query.Least)
	}
	return nil
}

func adviceCommand(server *term.Connection) *cobra.Command {
	var flags adviceFlags
	var asJSON bool
	command := &cobra.Command{
		Use:   "advice",
		Short: "Say how many GPUs should be awake, and which workers to wake or to drain",
		Long: `Say how many GPUs (trial slots, where no worker has one) should be awake so that a
share of the demand finds one, given what is forecast, and which workers to wake
or to drain for that. It does nothing by itself; "tandem launch" starts workers while
trials wait, and lets them go.
What lies ahead and what is saved are estimates (docs/forecasting.md).`,
		Example: `  tandem pool advice
  tandem pool advice --performance 0.95 --least 2`,
		Args: term.Arguments(0, "no arguments"),
		RunE: server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			if err := flags.check(); err != nil {
				return err
			}
			return term.Answer(out, asJSON, printAdvice)(client.PoolAdvice(ctx, flags.query))
		}),
	}
	flags.add(command)
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}

func printAdvice(out io.Writer, advice protocol.PoolAdvice) error {
	fmt.Fprintf(out, "%s of %s %s are awake; %s should be, so that %g%% of the demand finds one (estimate): %s\n",
		gpus(advice.Awake), gpus(advice.Total), advice.Unit, gpus(advice.Wanted), 100*advice.Performance, format.Plain(advice.Reason))
	if advice.Missing > 0 {
		fmt.Fprintf(out, "%s of them no known worker has: start machines.\n", gpus(advice.Missing))
	}
	if len(advice.Workers) > 0 {
		var rows [][]string
		for _, one := range advice.Workers {
			rows = append(rows, []string{format.Plain(one.Name), one.Action, gpus(one.Capacity), fmt.Sprint(one.Trials), format.Plain(one.Reason)})
		}
		fmt.Fprintln(out)
		if err := term.Table(out, []string{"WORKER", "DO", "HAS", "TRIALS", "WHY"}, rows); err != nil {
			return err
		}
	}
	if len(advice.Settings) > 0 {
		fmt.Fprintf(out, "\nThe knob, on recorded minutes (estimates; %g W awake, %g W asleep, %s to wake up):\n\n",
			advice.Power.AwakeWatts, advice.Power.AsleepWatts, format.Count(advice.Power.DelayMinutes, "minute"))
		var rows [][]string
		for _, one := range advice.Settings {
			chosen := ""
			if one.Quantile == advice.Quantile {
				chosen = "<- now"
			}
			rows = append(rows, []string{fmt.Sprintf("%g%%", 100*one.Quantile), fmt.Sprintf("%.2f%%", 100*one.Served), fmt.Sprintf("%.1f%%", 100*one.Met), fmt.Sprintf("%.1f%%", 100*one.Saved), gpus(one.Wanted), chosen})
		}
		if err := term.Table(out, []string{"QUANTILE", "DEMAND SERVED", "MINUTES WITH ALL", "ENERGY SAVED", "AWAKE NOW", ""}, rows); err != nil {
			return err
		}
	}
	if seen := advice.Correction; seen != nil {
		fmt.Fprintf(out, "\nHeld against the %s that were compared, it would have served %.2f%% of the demand; asked for %g%%, it now aims at %.2f%% (estimates).\n",
			format.Count(seen.Minutes, "minute"), 100*seen.Served, 100*advice.Performance, 100*seen.Aim)
	}
	if advice.Saved != nil {
		fmt.Fprintf(out, "\nOver the last %s that were recorded, sleep saved %.0f kJ, %.1f%% of what all would have drawn idle (estimate), and %.1f%% of the demand found a GPU.\n",
			format.Count(advice.Saved.Minutes, "minute"), advice.Saved.Joules/1000, 100*advice.Saved.Share, 100*advice.Saved.Served)
	}
	return nil
}

// gpus is a number of GPUs, with a decimal where it has one.
func gpus(number float64) string {
	return strconv.FormatFloat(float64(int(number*10+0.5))/10, 'f', -1, 64)
}
