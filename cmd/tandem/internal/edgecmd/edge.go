// Package edgecmd is "tandem edge": models of trials on the devices that run them.
package edgecmd

import "github.com/spf13/cobra"

// Command is "tandem edge".
func Command() *cobra.Command {
	command := &cobra.Command{
		Use:   "edge",
		Short: "What a model costs where it is used, and how to deploy it",
	}
	command.AddCommand(devicesCommand())
	command.AddCommand(runCommand(), emulationProcessCommand())
	command.AddCommand(deployCommand())
	command.AddCommand(agentCommand(), boardsCommand())
	return command
}
