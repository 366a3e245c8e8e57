package main

import (
	"context"
	"fmt"
	"io"
	"maps"
	"slices"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/protocol"
	"github.com/tandem-tune/tandem/wording"
)

func workersCommand() *cobra.Command {
	var flags studyFlags
	var watching bool
	command := &cobra.Command{
		Use:   "workers",
		Short: "List the workers of a server, what holds their commands, and what they refuse",
		Example: `  tandem workers
  tandem workers --watch`,
		Args: arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			if watching && flags.json {
				return usageError{errWatchedJSON}
			}
			client, err := flags.server.open()
			if err != nil {
				return err
			}
			if flags.json {
				workers, err := client.Workers(command.Context())
				if err != nil {
					return err
				}
				return writeJSON(command.OutOrStdout(), workers)
			}
			return list(command.Context(), command.OutOrStdout(), watching, func(ctx context.Context) (listing, error) {
				workers, err := client.Workers(ctx)
				return listingOfWorkers(workers), err
			})
		},
	}
	connectionFlags(command, &flags.server)
	command.Flags().BoolVar(&flags.json, "json", false, "print JSON for scripts")
	watchFlag(command, &watching)
	return command
}

// listingOfWorkers is the listing of these.
func listingOfWorkers(workers []protocol.Worker) listing {
	seen := listing{print: func(out io.Writer) error { return printWorkers(out, workers) }}
	for _, worker := range workers {
		name := wording.Plain(worker.Name)
		trials := make([]string, len(worker.Trials))
		for i, one := range worker.Trials {
			trials[i] = string(one)
		}
		slices.Sort(trials)
		seen.things = append(seen.things, thing{name + " (" + wording.Plain(worker.ID) + ")", fmt.Sprintf("%s  %s  %s of %s: %s", name, shownLife(worker), wording.Count(len(trials), "trial"), shownSlots(worker), orNone(strings.Join(trials, " ")))})
	}
	return seen
}

// shownLife says whether a worker is heard of.
func shownLife(worker protocol.Worker) string {
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
			wording.Plain(worker.Name), shownLife(worker), wording.Plain(worker.Machine.Host), fmt.Sprint(worker.Machine.Cores), fmt.Sprintf("%d of %s", len(worker.Trials), shownSlots(worker)), shownSandbox(worker.Sandbox),
		})
	}
	if err := table(out, []string{"WORKER", "STATE", "HOST", "CORES", "TRIALS", "SANDBOX"}, rows); err != nil {
		return err
	}
	for _, worker := range workers {
		for _, study := range slices.Sorted(maps.Keys(worker.Refuses)) {
			fmt.Fprintf(out, "\n%s refuses study %s: %s\n", wording.Plain(worker.Name), wording.Plain(study), wording.Plain(worker.Refuses[study]))
		}
	}
	return nil
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
		missing = append(missing, wording.Plain(name))
	}
	return sandbox.Mode + ", without " + strings.Join(missing, ", ")
}
