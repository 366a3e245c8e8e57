// Command tandem is the study server, the worker agent and the command line in
// one binary. The packages below it hold the commands; this one puts them together.
package main

import (
	"context"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/datasetcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/hookcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/logincmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/mcpcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/policycmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/poolcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/startcmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/studycmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/truthcmd"
)

func main() {
	subprocess()
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(term.Execute(ctx, rootCommand(), os.Args[1:], os.Stdout, os.Stderr))
}

func rootCommand() *cobra.Command {
	root := term.Group(&cobra.Command{
		Use:   "tandem",
		Short: "Tune hyperparameters with workers, budgets and checkpoints",
		Long: `Tandem tunes training scripts: a server holds studies, workers pull trials,
a search decides which configuration trains next and which one goes on.

` + first + `
                           tandem study create study.yaml --watch

Exit codes: 0 done, 1 failed, 2 wrong command line or study file,
3 the study ended without a measured trial, 4 no server answered, 130 interrupted.`,
		Version: term.Version(),
	})
	root.AddCommand(
		startcmd.InitCommand(), startcmd.ExampleCommand(), startcmd.VersionCommand(), studycmd.Command(), truthcmd.Command(), logincmd.LoginCommand(), logincmd.LogoutCommand(), logincmd.UserCommand(),
		hookcmd.Command(), policycmd.Command(), datasetcmd.Command(), mcpcmd.Command(),
		poolcmd.Command(), poolcmd.WorkersCommand(), poolcmd.QuotaCommand(), poolcmd.GroupCommand(), poolcmd.ReservationCommand(),
	)
	root.AddCommand(ofMachines()...)
	return root
}
