package profilecmd

import (
	"context"
	"io"
	"os"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

// TestMain is the command itself for the test that needs it as a process.
func TestMain(m *testing.M) {
	if os.Getenv("TANDEM_TEST_MAIN") != "" {
		os.Exit(term.Execute(context.Background(), root(), os.Args[1:], os.Stdout, os.Stderr))
	}
	os.Exit(m.Run())
}

// root has another command with the flag, as the worker has it.
func root() *cobra.Command {
	worker := &cobra.Command{Use: "worker", Run: func(*cobra.Command, []string) {}}
	AddEventsFlag(worker, new(EventList))
	root := &cobra.Command{Use: "tandem"}
	root.AddCommand(Command(), worker)
	return root
}

// execute runs a command line of tandem and returns its exit code.
func execute(t *testing.T, args []string, stdout, stderr io.Writer) int {
	t.Helper()
	return term.Execute(t.Context(), root(), args, stdout, stderr)
}
