package main

import (
	"context"
	"errors"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
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

// errNoResult is the error of a study that ended without a measured trial.
var errNoResult = errors.New("the study ended without a measured trial")

// errDiffers is what two studies that differ end --exit-code with.
var errDiffers = errors.New("the definitions differ")

// usageError is a wrong command line.
type usageError struct{ error }

// misuse is the error of a wrong command line, with a text as of fmt.Errorf.
func misuse(format string, arguments ...any) error {
	return usageError{fmt.Errorf(format, arguments...)}
}

// commandEnded passes a command's exit code on.
type commandEnded struct{ code int }

// Error names the code.
func (e commandEnded) Error() string { return fmt.Sprintf("the command ended with code %d", e.code) }

// execute runs one command line of the root command and returns its exit code.
func execute(ctx context.Context, root *cobra.Command, args []string, stdout, stderr io.Writer) int {
	root.SilenceUsage, root.SilenceErrors = true, true
	root.SetFlagErrorFunc(func(command *cobra.Command, err error) error {
		return misuse("%w\nSee '%s --help'", err, command.CommandPath())
	})
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

// exitCode is the exit code of a command that ended with the error.
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
