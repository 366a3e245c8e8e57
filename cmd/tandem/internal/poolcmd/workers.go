package poolcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"iter"
	"maps"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/selector"
)

// WorkersCommand is "tandem workers".
func WorkersCommand() *cobra.Command {
	var flags term.Flags
	command := &cobra.Command{
		Use:     "workers",
		Short:   "List the workers of a server, what holds their commands, and what they refuse",
		Example: `  tandem workers`,
		Args:    term.Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			return term.Answer(out, flags.JSON, printWorkers)(client.Workers(ctx))
		}),
	}
	term.AddConnectionFlags(command, &flags.Server)
	command.Flags().BoolVar(&flags.JSON, "json", false, "print JSON for scripts")
	return command
}

// shownLife says whether a worker is heard of, and given trials.
func shownLife(worker protocol.Worker) string {
	if worker.Alive && worker.Drained != nil {
		return "drained"
	}
	if worker.Alive {
		return "alive"
	}
	return "silent"
}

// shownSlots is how many trials a worker runs at once.
func shownSlots(worker protocol.Worker) string {
	if worker.Elastic {
		return "auto"
	}
	return strconv.Itoa(worker.Slots)
}

func orNone(text string) string {
	if text == "" {
		return "none"
	}
	return text
}

func printWorkers(out io.Writer, workers []protocol.Worker) error {
	if len(workers) == 0 {
		_, err := fmt.Fprintln(out, "No worker is connected. Start one: tandem worker --server URL")
		return err
	}
	var rows [][]string
	for _, worker := range workers {
		rows = append(rows, []string{
			format.Plain(worker.Name), shownLife(worker), shownVersion(worker.Build), format.Plain(worker.Machine.Host), shownCores(worker.Machine), fmt.Sprintf("%d of %s", len(worker.Trials), shownSlots(worker)), shownSandbox(worker.Sandbox),
		})
	}
	if err := term.Table(out, []string{"WORKER", "STATE", "VERSION", "HOST", "CORES", "TRIALS", "SANDBOX"}, rows); err != nil {
		return err
	}
	printUnlike(out, func(yield func(string, build.Build) bool) {
		for _, worker := range workers {
			yield(worker.Name, worker.Build)
		}
	})
	for _, worker := range workers {
		if len(worker.Labels) > 0 {
			fmt.Fprintf(out, "\n%s has the labels %s\n", format.Plain(worker.Name), format.Plain(selector.Shown(worker.Labels)))
		}
		if len(worker.Taints) > 0 {
			fmt.Fprintf(out, "\n%s takes only trials that tolerate %s\n", format.Plain(worker.Name), format.Plain(strings.Join(worker.Taints, ", ")))
		}
		if claim := worker.Confidential; claim != nil {
			fmt.Fprintf(out, "\n%s says that it is a confidential machine: %s\n", format.Plain(worker.Name), format.Plain(claim.String()))
		}
		if account := worker.Sprint; account != nil {
			fmt.Fprintf(out, "\n%s has %.4g of %.4g J left for sprints, by its owner's estimate\n", format.Plain(worker.Name), account.Joules, account.Of)
		}
		if worker.Drained != nil && worker.Drained.Reason != "" {
			fmt.Fprintf(out, "\n%s is drained: %s\n", format.Plain(worker.Name), format.Plain(worker.Drained.Reason))
		}
		for _, study := range slices.Sorted(maps.Keys(worker.Refuses)) {
			fmt.Fprintf(out, "\n%s refuses study %s: %s\n", format.Plain(worker.Name), format.Plain(study), format.Plain(worker.Refuses[study]))
		}
		for _, study := range slices.Sorted(maps.Keys(worker.Excluded)) {
			one := worker.Excluded[study]
			fmt.Fprintf(out, "\n%s is excluded from study %s until %s: %s\n", format.Plain(worker.Name), format.Plain(study), one.Until.Local().Format(time.DateTime), format.Plain(one.Reason))
		}
	}
	return nil
}

// shownVersion is which tandem a worker is.
func shownVersion(of build.Build) string { return cmp.Or(format.Plain(of.Version), "not told") }

// printUnlike says which are not of the server's version.
func printUnlike(out io.Writer, all iter.Seq2[string, build.Build]) {
	for _, line := range build.Unlike(all) {
		fmt.Fprintf(out, "\n%s\n", format.Plain(line))
	}
}

// shownCores is how many cores a worker has, and how much of their time where
// that is limited.
func shownCores(machine protocol.Machine) string {
	if machine.CPUQuota > 0 {
		return fmt.Sprintf("%d (%.3g of time)", machine.Cores, machine.CPUQuota)
	}
	return strconv.Itoa(machine.Cores)
}

// shownSandbox says what holds a worker's commands.
func shownSandbox(sandbox *protocol.Sandbox) string {
	switch {
	case sandbox == nil:
		return "not told"
	case sandbox.Mode == "off":
		return "off"
	case sandbox.Complete():
		return sandbox.Mode + ", all layers"
	}
	var missing []string
	for _, one := range sandbox.Missing {
		name, _, _ := strings.Cut(one, ":")
		missing = append(missing, format.Plain(name))
	}
	return sandbox.Mode + ", without " + strings.Join(missing, ", ")
}
