package poolcmd

import (
	"io"
	"testing"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
)

// execute runs a command line of tandem and returns its exit code.
func execute(t *testing.T, args []string, stdout, stderr io.Writer) int {
	t.Helper()
	root := &cobra.Command{Use: "tandem"}
	root.AddCommand(Command())
	return term.Execute(t.Context(), root, args, stdout, stderr)
}
