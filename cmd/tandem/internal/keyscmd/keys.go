// Package keyscmd makes the keys that checkpoints are encrypted with, and releases them to
// confidential machines: "tandem keys".
package keyscmd

import (
	"errors"
	"fmt"
	"io/fs"
	"os"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/sealed"
)

// Command is "tandem keys".
func Command() *cobra.Command {
	command := term.Group(&cobra.Command{
		Use:   "keys",
		Short: "Make keys that checkpoints are encrypted with, and release them to confidential machines",
		Long: `Make keys that checkpoints are encrypted with, so that the server cannot read
them: docs/encryption.md. They are keys of age, which age-keygen makes too.
Release them to confidential machines that your policy allows: docs/confidential.md.`,
	})
	command.AddCommand(createCommand(), serveCommand(), auditCommand())
	return command
}

func createCommand() *cobra.Command {
	var path string
	var postQuantum bool
	command := &cobra.Command{
		Use:   "create",
		Short: "Make a key: write its identity to a new file, and print its public key",
		Long: `Make a key: write its identity to a new file that only you can read, and print
its public key, for encryption.recipients of study files. Keep a copy of the file:
without it nobody can read what was encrypted.`,
		Example: `  tandem keys create --out workers.key
  tandem keys create --out workers.key --post-quantum`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			content, recipient, err := sealed.Create(postQuantum)
			if err != nil {
				return err
			}
			if err := write(path, content); err != nil {
				return err
			}
			_, err = fmt.Fprintln(command.OutOrStdout(), recipient)
			return err
		},
	}
	command.Flags().StringVarP(&path, "out", "o", "tandem.key", "file to write; it must not exist")
	command.Flags().BoolVar(&postQuantum, "post-quantum", false, "make a hybrid key, which quantum computers cannot break either; its public key has about 2,000 characters")
	return command
}

// write makes the file, durably, or leaves what is there.
func write(path, content string) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if errors.Is(err, fs.ErrExist) {
		return fmt.Errorf("--out %s: the file exists, and a key is never overwritten: name another", path)
	}
	if err != nil {
		return fmt.Errorf("--out: %w", err)
	}
	_, err = file.WriteString(content)
	return errors.Join(err, file.Sync(), file.Close())
}
