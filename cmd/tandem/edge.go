package main

import "github.com/spf13/cobra"

// edgeCommand is the parent of what answers how models run where they are used.
func edgeCommand() *cobra.Command {
	command := &cobra.Command{
		Use:   "edge",
		Short: "What a model costs where it is used, and how to deploy it",
	}
	command.AddCommand(edgeDevicesCommand())
	command.AddCommand(edgeBatchCommand())
	command.AddCommand(edgeBackendCommand())
	command.AddCommand(edgeRunCommand(), emulationProcessCommand())
	command.AddCommand(edgeInspectCommand())
	command.AddCommand(edgeDeployCommand(), edgeCalibrateCommand())
	return command
}
