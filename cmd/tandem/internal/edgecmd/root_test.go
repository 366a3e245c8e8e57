package edgecmd

import (
	"io"
	"os"
	"slices"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/emulator"
)

// TestMain is the process that looks at models, for the tests that need it.
func TestMain(m *testing.M) {
	if slices.Equal(os.Args[1:], emulator.Subcommand()) {
		os.Exit(emulator.Process())
	}
	os.Exit(m.Run())
}

// execute runs a command line of tandem and returns its exit code.
func execute(t *testing.T, args []string, stdout, stderr io.Writer) int {
	t.Helper()
	root := &cobra.Command{Use: "tandem"}
	root.AddCommand(Command())
	return term.Execute(t.Context(), root, args, stdout, stderr)
}
