package main

import (
	"context"
	"os"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/workers/agent"
)

var _ agent.Server = (*rest.Client)(nil)

func workerCommand() *cobra.Command {
	var server connection
	var options workerOptions
	var verbose bool
	command := &cobra.Command{
		Use:   "worker",
		Short: "Run trials on this machine",
		Long: `Run trials on this machine: pull them from the server, start their commands,
report every epoch, keep checkpoints, and give the trials back on Ctrl-C.

Commands start without a shell, in a process group of their own, with a clean
environment, in the study's directory (relative to --directory).`,
		Example: `  TANDEM_TOKEN=... tandem worker --server http://127.0.0.1:7171
  TANDEM_TOKEN=... tandem worker --slots 2 --directory ~/project --pass-env HF_HOME`,
		Args: arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := server.open()
			if err != nil {
				return err
			}
			logger := newLogger(command.ErrOrStderr(), verbose)
			return runWorker(command.Context(), client, options.agent(client, logger))
		},
	}
	connectionFlags(command, &server)
	workerFlags(command, &options)
	command.Flags().BoolVar(&verbose, "verbose", false, "log every request and report")
	return command
}

// runWorker runs an agent until the context ends and it has drained.
func runWorker(ctx context.Context, _ *rest.Client, options agent.Options) error {
	worker, err := agent.New(options)
	if err != nil {
		return err
	}
	return worker.Run(ctx)
}

func hostName() string {
	name, err := os.Hostname()
	if err != nil {
		return "worker"
	}
	return name
}
