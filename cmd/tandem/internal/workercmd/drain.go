package workercmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func workerDrainCommand(server *term.Connection) *cobra.Command {
	var ask protocol.DrainRequest
	command := &cobra.Command{
		Use:   "drain WORKER",
		Short: "Give a worker no more trials, until it is undrained",
		Long: `Give a worker no more trials, until it is undrained: also when it or the server
is started again. It is named by its name or its id, as "tandem workers" shows
them. The trials that it runs go on to the end of their rung; with --now they
pause by checkpoint and go on elsewhere.`,
		Example: `  tandem worker drain rack-7 --reason "new disk"
  tandem worker drain rack-7 --now`,
	}
	command.Flags().BoolVar(&ask.Now, "now", false, "let the trials that it runs pause by checkpoint and go on elsewhere")
	command.Flags().StringVar(&ask.Reason, "reason", "", "why, for people to see")
	return onWorker(server, command, func(ctx context.Context, client *rest.Client, worker string) (protocol.Drained, error) {
		return client.Drain(ctx, worker, ask)
	}, "drained")
}

func workerUndrainCommand(server *term.Connection) *cobra.Command {
	return onWorker(server, &cobra.Command{
		Use:     "undrain WORKER",
		Short:   "Give a drained worker trials again",
		Example: `  tandem worker undrain rack-7`,
	}, func(ctx context.Context, client *rest.Client, worker string) (protocol.Drained, error) {
		return client.Undrain(ctx, worker)
	}, "undrained")
}

// onWorker is a command that drains or undrains a worker.
func onWorker(server *term.Connection, command *cobra.Command, change func(context.Context, *rest.Client, string) (protocol.Drained, error), done string) *cobra.Command {
	var asJSON bool
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	command.Args = term.Arguments(1, "the name or the id of a worker, as 'tandem workers' shows them")
	command.RunE = server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
		answer, err := change(ctx, client, args[0])
		if err != nil {
			return err
		}
		if asJSON {
			return term.WriteJSON(out, answer)
		}
		return printDrained(out, answer, done)
	})
	return command
}

func printDrained(out io.Writer, answer protocol.Drained, done string) error {
	names := make([]string, len(answer.Workers))
	for i, name := range answer.Workers {
		names[i] = format.Plain(name)
	}
	text := strings.Join(names, ", ") + " is " + done
	if len(names) == 0 {
		text = "It was not drained"
	}
	if answer.Trials > 0 && done == "drained" {
		text += "; it still runs " + format.Count(answer.Trials, "trial")
	}
	_, err := fmt.Fprintln(out, text)
	return err
}
