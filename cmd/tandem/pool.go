package main

import "github.com/spf13/cobra"

// poolCommand is the parent of what is about the workers as a whole.
func poolCommand() *cobra.Command {
	var server connection
	command := group(&cobra.Command{Use: "pool", Short: "What the worker pool does, and what it would do"})
	command.AddCommand(poolReplayCommand())
	for _, below := range []*cobra.Command{poolForecastCommand(&server), poolAdviceCommand(&server), poolAutoscaleCommand(&server)} {
		connectionFlags(below, &server)
		command.AddCommand(below)
	}
	return command
}
