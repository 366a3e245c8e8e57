// Package truthcmd is "tandem ground-truth": what runs taught about their workloads.
package truthcmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// truthFlags are shared by the commands below "tandem ground-truth".
type truthFlags struct {
	term.Flags
	machine string
}

// Command is "tandem ground-truth".
func Command() *cobra.Command {
	var flags truthFlags
	command := term.Group(&cobra.Command{
		Use:   "ground-truth",
		Short: "List, move and forget what runs taught about their workloads",
		Long: `List, move and forget what runs taught about their workloads: how long an epoch
took with which system configuration, and its profile, by type of machine. Runs
that are similar go on with the configuration that was best. It holds nothing of
the studies: no name, parameter, metric or data.`,
	})
	term.AddConnectionFlags(command, &flags.Server)
	command.AddCommand(truthListCommand(&flags), truthExportCommand(&flags), truthImportCommand(&flags), truthForgetCommand(&flags))
	return command
}

// asJSON is the flag of the commands whose answer scripts read.
func (f *truthFlags) asJSON(command *cobra.Command) {
	command.Flags().BoolVar(&f.JSON, "json", false, "print JSON for scripts")
}

// ofMachine is the flag of the commands about one type of machine.
func (f *truthFlags) ofMachine(command *cobra.Command, usage string) {
	command.Flags().StringVar(&f.machine, "machine", "", usage)
}

func truthListCommand(flags *truthFlags) *cobra.Command {
	command := term.List[protocol.GroundTruthMachine]{
		Short: "List the types of machine that something is known of", Example: `  tandem ground-truth list`, Key: "machines",
		Get: (*rest.Client).GroundTruthMachines, Print: printMachines,
	}.Command(&flags.Flags)
	flags.asJSON(command)
	return command
}

func printMachines(out io.Writer, machines []protocol.GroundTruthMachine) error {
	const none = "Nothing is known yet. Runs of studies with \"system: auto\" teach it; or import what another server knows with 'tandem ground-truth import FILE'."
	return term.Rows(out, machines, none, []string{"MACHINE", "RECORDS", "CONFIGURATIONS", "EPOCHS", "NEWEST"}, func(one protocol.GroundTruthMachine) []string {
		return []string{format.Plain(one.Machine), fmt.Sprint(one.Records), fmt.Sprint(one.Configurations), fmt.Sprint(one.Epochs), one.Newest.Local().Format("2006-01-02 15:04")}
	})
}

func truthForgetCommand(flags *truthFlags) *cobra.Command {
	var all, sure bool
	command := &cobra.Command{
		Use:   "forget",
		Short: "Forget what runs taught on a type of machine, or on all of them",
		Long: `Forget what runs taught on a type of machine, or on all of them: because its
drivers were replaced, say, and epochs take another time now. Runs that go on
begin their record anew with their next report.`,
		Example: `  tandem ground-truth forget --machine "AMD EPYC 7763 64-Core Processor, 128 cores"
  tandem ground-truth forget --all --yes`,
		Args: term.Arguments(0, "no arguments"),
	}
	command.RunE = flags.Server.Run(func(_ context.Context, client *rest.Client, _ []string, _ io.Writer) error {
		if (flags.machine != "") == all {
			return term.Misuse("say what to forget: either --machine with a type of machine, as 'tandem ground-truth list' shows it, or --all")
		}
		return flags.forget(command, client, sure)
	})
	flags.ofMachine(command, "the type of machine to forget")
	command.Flags().BoolVar(&all, "all", false, "forget all types of machine")
	command.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	flags.asJSON(command)
	return command
}

func (f *truthFlags) forget(command *cobra.Command, client *rest.Client, sure bool) error {
	what := "all types of machine"
	if f.machine != "" {
		what = format.Plain(f.machine)
	}
	if !sure {
		if err := term.Confirm(command, fmt.Sprintf("Forget what runs taught on %s?", what)); err != nil {
			return err
		}
	}
	reply, err := client.ForgetGroundTruth(command.Context(), f.machine)
	if err != nil {
		return err
	}
	return term.SayAnswer(command.OutOrStdout(), f.JSON, reply, "%s of %s forgotten\n", format.Count(reply.Forgotten, "record"), what)
}
