package term

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
)

// The exit codes, the same for every command.
const (
	ExitOK          = 0
	ExitFailed      = 1   // the command could not do what it was asked
	ExitUsage       = 2   // the command line or the study file is wrong
	exitNoResult    = 3   // the study ended, and no trial was measured
	ExitUnreachable = 4   // no server answered
	exitInterrupted = 130 // stopped by Ctrl-C
)

// ErrNoResult is the error of a study that ended without a measured trial.
var ErrNoResult = errors.New("the study ended without a measured trial")

// UsageError is a wrong command line.
type UsageError struct{ error }

// Misuse is the error of a wrong command line, with a text as of fmt.Errorf.
func Misuse(format string, arguments ...any) error {
	return UsageError{fmt.Errorf(format, arguments...)}
}

// Ended passes a command's exit code on.
type Ended struct {
	// Code is what this process ends with as well.
	Code int
}

// coded is an error with an exit code of its own.
type coded struct {
	error
	code int
}

// WithCode has the command end with the code, and say the error.
func WithCode(code int, err error) error { return coded{err, code} }

// Unwrap returns the error.
func (c coded) Unwrap() error { return c.error }

// Error names the code.
func (e Ended) Error() string { return fmt.Sprintf("the command ended with code %d", e.Code) }

// Execute runs one command line of the root command and returns its exit code.
func Execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		if args := command.Flags().Args(); command.HasSubCommands() && len(args) > 0 {
			return noCommand(command, args[0])
		}
		text, parser, _ := strings.Cut(err.Error(), "strconv.Parse")
		if kind, _, number := strings.Cut(parser, ":"); number {
			text += map[string]string{"Int": "it must be a whole number", "Uint": "it must be a whole number of at least 0", "Float": "it must be a number", "Bool": "it must be true or false"}[kind]
		} else if strings.Contains(text, " flag: time: ") {
			text += ": write one such as 90m or 8h"
		} else if name, unknown := strings.CutPrefix(text, "unknown flag: --"); unknown {
			var names []string
			command.Flags().VisitAll(func(flag *pflag.Flag) { names = append(names, flag.Name) })
			if meant := problem.Meant(name, names); meant != "" {
				text += "; did you mean --" + meant + "?"
			}
		}
		return Misuse("%s\nSee '%s --help'", text, command.CommandPath())
	})
	root.SetArgs(args)
	root.SetOut(stdout)
	root.SetErr(stderr)
	err := root.ExecuteContext(ctx)
	if err == nil {
		return ExitOK
	}
	if ended, ok := errors.AsType[Ended](err); ok {
		return ended.Code
	}
	shown := err
	if ctx.Err() != nil {
		shown = withoutInterrupt(err)
	}
	if shown != nil {
		fmt.Fprintln(stderr, "tandem:", format.Lines(shown.Error())) // a server may have said it
	}
	if problem.Is(err, problem.Unauthorized) {
		fmt.Fprintln(stderr, "Set TANDEM_TOKEN to a token of this server, or name a file that holds one with --token-file.\n"+
			"Where an identity provider signs users in, tandem login has another: it is valid for a week.\n"+
			"On the server's machine, tandem token create --scope SCOPE --data FOLDER makes one: admin, user, worker, or device for a board.")
	}
	return ExitCode(ctx, err)
}

// ExitCode is the exit code of a command that ended with the error.
func ExitCode(ctx context.Context, err error) int {
	var usage UsageError
	var own coded
	switch {
	case errors.As(err, &own):
		return own.code
	case ctx.Err() != nil && withoutInterrupt(err) == nil:
		return exitInterrupted
	case errors.Is(err, ErrNoResult):
		return exitNoResult
	case errors.As(err, &usage), problem.Is(err, problem.Invalid):
		return ExitUsage
	case problem.Is(err, problem.Unavailable):
		return ExitUnreachable
	case ctx.Err() != nil:
		return exitInterrupted
	default:
		return ExitFailed
	}
}

// withoutInterrupt is what went wrong besides the interruption itself, of which the user
// knows.
func withoutInterrupt(err error) error {
	if joined, ok := err.(interface{ Unwrap() []error }); ok {
		var rest []error
		for _, one := range joined.Unwrap() {
			rest = append(rest, withoutInterrupt(one))
		}
		return errors.Join(rest...)
	}
	if errors.Is(err, context.Canceled) {
		return nil
	}
	return err
}
