// Command tandem is the study server, the worker agent and the command line in
// one binary. Its packages below do the work; this one reads flags, wires the
// parts together and prints answers. It decides nothing about tuning.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"os/signal"
	"runtime/debug"
	"slices"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// The exit codes, the same for every command.
const (
	exitOK          = 0
	exitFailed      = 1   // the command could not do what it was asked
	exitUsage       = 2   // the command line or the study file is wrong
	exitNoResult    = 3   // the study ended, and no trial was measured
	exitUnreachable = 4   // no server answered
	exitDiffers     = 5   // "study diff --exit-code": the definitions differ
	exitInterrupted = 130 // stopped by Ctrl-C
)

// noResult is the error of a study that ended without a measured trial.
var errNoResult = errors.New("the study ended without a measured trial")

func main() {
	if slices.Equal(os.Args[1:], sandbox.Subcommand()) {
		os.Exit(sandbox.Process())
	}
	ctx, stop := signal.NotifyContext(context.Background(), os.Interrupt, syscall.SIGTERM)
	defer stop()
	os.Exit(execute(ctx, os.Args[1:], os.Stdout, os.Stderr))
}

// execute runs one command line and returns its exit code.
func execute(ctx context.Context, args []string, stdout, stderr io.Writer) int {
	root := rootCommand()
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return exitOK
	}
	var ended commandEnded
	if errors.As(err, &ended) {
		return ended.code
	}
	shown := err
	if ctx.Err() != nil {
		shown = besides(err)
	}
	if shown != nil {
		fmt.Fprintln(stderr, "tandem:", format.Lines(shown.Error())) // a server may have said it
	}
	if problem.Is(err, problem.Unauthorized) {
		fmt.Fprintln(stderr, "Set TANDEM_TOKEN to a token of this server, or name a file that holds one with --token-file.")
	}
	return exitCode(ctx, err)
}

// besides is what went wrong besides the interruption itself, of which the user
// knows.
func besides(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range joined.Unwrap() {
			rest = append(rest, besides(one))
		}
		return errors.Join(rest...)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}

func exitCode(ctx context.Context, err error) int {
	var usage usageError
	switch {
	case ctx.Err() != nil && besides(err) == nil:
		return exitInterrupted
	case errors.Is(err, errNoResult):
		return exitNoResult
	case errors.Is(err, errDiffers):
		return exitDiffers
	case errors.As(err, &usage), problem.Is(err, problem.Invalid):
		return exitUsage
	case problem.Is(err, problem.Unavailable):
		return exitUnreachable
	case ctx.Err() != nil:
		return exitInterrupted
	default:
		return exitFailed
	}
}

// usageError is a wrong command line.
type usageError struct{ error }

func rootCommand() *cobra.Command {
	root := group(&cobra.Command{
		Use:   "tandem",
		Short: "Tune hyperparameters with workers, budgets and checkpoints",
		Long: `Tandem tunes training scripts: a server holds studies, workers pull trials,
a search decides which configuration trains next and which one goes on.

Try it on one machine:     tandem run study.yaml
Or with several machines:  tandem serve                        (on the server)
                           tandem worker --server URL          (on each machine)
                           tandem study create study.yaml --watch

Exit codes: 0 done, 1 failed, 2 wrong command line or study file,
3 the study ended without a measured trial, 4 no server answered, 5 "tandem study
diff --exit-code" found a difference, 130 interrupted;
"tandem profile" has the code of the command it ran.`,
		Version:       version(),
		SilenceUsage:  true,
		SilenceErrors: true,
	})
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return usageError{fmt.Errorf("%w\nSee '%s --help'", err, command.CommandPath())}
	})
	root.AddCommand(serveCommand(), workerCommand(), workersCommand(), runCommand(), studyCommand(), groundTruthCommand(), quotaCommand(), reservationCommand(), tokenCommand(), auditCommand(), doctorCommand(), profileCommand(), eventsCommand(), edgeCommand(), poolCommand(),
		backupCommand(), restoreCommand(), verifyCommand())
	return root
}

// version is the module version the binary was built from.
func version() string {
	info, ok := debug.ReadBuildInfo()
	if !ok || info.Main.Version == "" || info.Main.Version == "(devel)" {
		return "development build"
	}
	return info.Main.Version
}

// arguments checks the number of positional arguments and says what they are.
func arguments(count int, what string) cobra.PositionalArgs {
	return func(command *cobra.Command, args []string) error {
		if len(args) == count {
			return nil
		}
		return usageError{fmt.Errorf("%s takes %s\nSee '%s --help'", command.CommandPath(), what, command.CommandPath())}
	}
}
