package main

import "github.com/spf13/cobra"

// poolCommand is the parent of what is about the workers as a whole.
func poolCommand() *cobra.Command {
	command := group(&cobra.Command{Use: "pool", Short: "What the worker pool does, and what it would do"})
	command.AddCommand(poolReplayCommand())
	return command
}
