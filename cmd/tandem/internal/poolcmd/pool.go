// Package poolcmd holds the commands about what studies share: the pool of workers and
// its GPUs, quotas and reservations.
package poolcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/trial"
)

// Command is "tandem pool".
func Command() *cobra.Command {
	var flags term.Flags
	command := &cobra.Command{
		Use:   "pool",
		Short: "Show who runs where and why, and what waits",
		Long: `Show who runs where and why: each worker with its trials and the reason for which
they are there, and what studies have ready. docs/placement.md tells how it is
decided. Seconds and joules that have not been spent yet are estimates. The page Pool
and --json have more: how well epochs are predicted, and which trials moved.`,
		Example: `  tandem pool`,
		Args:    term.Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			return term.Answer(out, flags.JSON, printPool)(client.Pool(ctx))
		}),
	}
	term.AddConnectionFlags(command, &flags.Server)
	command.Flags().BoolVar(&flags.JSON, "json", false, "print JSON for scripts")
	for _, below := range []*cobra.Command{adviceCommand(&flags.Server), launchesCommand(&flags.Server), tryAgainCommand(&flags.Server)} {
		term.AddConnectionFlags(below, &flags.Server)
		command.AddCommand(below)
	}
	return command
}

// shownRun names a trial that runs.
func shownRun(run protocol.PoolRun) string {
	return fmt.Sprintf("%s trial %d", format.Plain(run.Study), run.Number)
}

func printPool(out io.Writer, pool protocol.Pool) error {
	if len(pool.Machines) == 0 {
		_, err := fmt.Fprintln(out, "No worker is connected. Start one: tandem worker --server URL")
		return err
	}
	if err := printPoolMachines(out, pool); err != nil {
		return err
	}
	printUnlike(out, func(yield func(string, build.Build) bool) {
		for _, machine := range pool.Machines {
			yield(machine.Name, machine.Build)
		}
	})
	printPoolReasons(out, pool)
	return printPoolWaiting(out, pool)
}

func printPoolMachines(out io.Writer, pool protocol.Pool) error {
	var rows [][]string
	for _, machine := range pool.Machines {
		var runs []string
		for _, run := range machine.Running {
			runs = append(runs, shownRun(run))
		}
		if machine.Busy {
			runs = append(runs, "busy for others")
		}
		state := "alive"
		switch {
		case !machine.Alive:
			state = "silent"
		case machine.Drained:
			state = "drained"
		case machine.Waiting > 0:
			state = "waits for " + format.Count(machine.Waiting, "trial")
		}
		if machine.Reserved != "" {
			state += "; reserved for " + format.Plain(machine.Reserved)
		}
		rows = append(rows, []string{format.Plain(machine.Name), format.Plain(machine.Type), state, orNone(strings.Join(runs, ", "))})
	}
	return term.Table(out, []string{"WORKER", "TYPE", "STATE", "RUNS"}, rows)
}

// printPoolReasons says why trials are where they are, where there was a choice.
func printPoolReasons(out io.Writer, pool protocol.Pool) {
	for _, machine := range pool.Machines {
		for _, run := range machine.Running {
			if run.Placement != nil {
				fmt.Fprintf(out, "\n%s on %s: %s\n", shownRun(run), format.Plain(machine.Name), format.Plain(run.Placement.Why))
			}
			if run.Moves != "" {
				fmt.Fprintf(out, "\n%s %s\n", shownRun(run), format.Plain(run.Moves))
			}
			if run.GPU != nil {
				fmt.Fprintf(out, "\n%s on %s has %s\n", shownRun(run), format.Plain(machine.Name), shownPoolGPU(*run.GPU, machine.Running))
			}
		}
	}
}

func printPoolWaiting(out io.Writer, pool protocol.Pool) error {
	if len(pool.Waiting) == 0 {
		return nil
	}
	fmt.Fprintln(out)
	var rows [][]string
	for _, one := range pool.Waiting {
		what := fmt.Sprintf("up to %d new", one.New)
		if one.Number != nil {
			what = fmt.Sprintf("trial %d", *one.Number)
		}
		rows = append(rows, []string{format.Plain(one.Study), what, fmt.Sprint(one.Priority), fmt.Sprintf("%g", one.Energy), format.Plain(one.Why), shownOptions(one.Options)})
	}
	return term.Table(out, []string{"WAITS", "WHAT", "PRIORITY", "H", "WHY", "AN EPOCH (ESTIMATE)"}, rows)
}

// shownOptions are the scores of types of machine of which something is known.
func shownOptions(options []trial.PlacementOption) string {
	var list []string
	for _, one := range options {
		if one.Epoch != nil {
			list = append(list, fmt.Sprintf("%s: %s, score %.2f", format.Plain(one.Machine), shownAmounts(float64(one.Epoch.Seconds), float64(one.Epoch.Joules)), float64(one.Score)))
		}
	}
	if len(list) == 0 {
		return "not known yet"
	}
	return strings.Join(list, "; ")
}

func shownAmounts(seconds, joules float64) string {
	if joules == 0 {
		return fmt.Sprintf("%.3g s", seconds)
	}
	return fmt.Sprintf("%.3g s and %.3g J", seconds, joules)
}
