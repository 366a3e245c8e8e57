package main

import (
	"fmt"
	"io"
	"maps"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/protocol"
)

func workersCommand() *cobra.Command {
	var flags studyFlags
	command := &cobra.Command{
		Use:   "workers",
		Short: "List the workers of a server, what holds their commands, and what they refuse",
		Args:  arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := flags.server.open()
			if err != nil {
				return err
			}
			workers, err := client.Workers(command.Context())
			if err != nil {
				return err
			}
			if flags.json {
				return writeJSON(command.OutOrStdout(), workers)
			}
			return printWorkers(command.OutOrStdout(), workers)
		},
	}
	connectionFlags(command, &flags.server)
	command.Flags().BoolVar(&flags.json, "json", false, "print JSON for scripts")
	return command
}

func printWorkers(out io.Writer, workers []protocol.Worker) error {
	if len(workers) == 0 {
		_, err := fmt.Fprintln(out, "No worker is connected. Start one: tandem worker --server URL")
		return err
	}
	var rows [][]string
	for _, worker := range workers {
		state := "alive"
		if !worker.Alive {
			state = "silent"
		}
		slots := fmt.Sprint(worker.Slots)
		if worker.Elastic {
			slots = "auto"
		}
		rows = append(rows, []string{
			plainText(worker.Name), state, plainText(worker.Machine.Host), fmt.Sprint(worker.Machine.Cores), fmt.Sprintf("%d of %s", len(worker.Trials), slots), shownSandbox(worker.Sandbox),
		})
	}
	if err := table(out, []string{"WORKER", "STATE", "HOST", "CORES", "TRIALS", "SANDBOX"}, rows); err != nil {
		return err
	}
	for _, worker := range workers {
		for _, study := range slices.Sorted(maps.Keys(worker.Refuses)) {
			fmt.Fprintf(out, "\n%s refuses study %s: %s\n", plainText(worker.Name), plainText(study), plainText(worker.Refuses[study]))
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
		missing = append(missing, plainText(name))
	}
	return sandbox.Mode + ", without " + strings.Join(missing, ", ")
}
