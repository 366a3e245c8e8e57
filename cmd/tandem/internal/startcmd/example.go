// Package startcmd has what somebody runs first: "tandem example", "tandem init"
// and "tandem version".
package startcmd

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/examples"
	"github.com/tandem-tune/tandem/internal/format"
)

// ExampleCommand is "tandem example".
func ExampleCommand() *cobra.Command {
	return &cobra.Command{
		Use:   "example FOLDER",
		Short: "Write an example to a new folder: a study file and its script",
		Long: `Write an example to a new folder: a study file and its script, a tiny network in
plain Python. It needs only Python 3.9 and the client, takes half a minute on
two cores, and shows what a script of your own needs.`,
		Example: "  tandem example quick-start\n  tandem run quick-start/study.yaml",
		Args:    term.Arguments(1, "the folder to make"),
		RunE: func(command *cobra.Command, args []string) error {
			folder := filepath.Clean(args[0])
			if err := os.Mkdir(folder, 0o755); errors.Is(err, fs.ErrExist) { //nolint:gosec // an example to read
				return term.Misuse("%s exists already: name a folder that does not", format.Plain(folder))
			} else if err != nil {
				return err
			}
			files, err := fs.Sub(examples.QuickStart, "quick-start")
			if err != nil {
				return err
			}
			if err := os.CopyFS(folder, files); err != nil {
				return err
			}
			next := "Tune it:\n\n    tandem run %[1]s/study.yaml\n"
			if term.Client {
				next = "Copy the folder into the --directory of a worker, then tune it:\n\n    tandem study create %[1]s/study.yaml --directory %[2]s --watch\n"
			}
			return term.SayAnswer(command.OutOrStdout(), false, nil, "Wrote %[1]s/study.yaml and %[1]s/train.py. "+next, format.Plain(filepath.ToSlash(folder)), format.Plain(filepath.Base(folder)))
		},
	}
}
