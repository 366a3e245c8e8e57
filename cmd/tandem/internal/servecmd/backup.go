package servecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/store/backup"
)

// BackupCommand is "tandem backup".
func BackupCommand() *cobra.Command {
	var data string
	var asJSON bool
	command := &cobra.Command{
		Use:   "backup FILE",
		Short: "Back up a server's data folder, while it runs",
		Long: `Write a backup of a server's data folder to one file: the database as it is at
one moment, and the checkpoints that it refers to. The server goes on meanwhile.

Every row of the copy is checked before the file gets its name; a file that is
there already is not replaced. It holds the hashes of tokens, no tokens, and
everything that trials reported: keep it like the data folder.`,
		Example: `  tandem backup /mnt/backups/tandem-$(date +%F).tar
  tandem backup tandem.tar --data /srv/tandem --json`,
		Args: term.Arguments(1, "the file to write"),
		RunE: func(command *cobra.Command, args []string) error {
			source := backup.Source{Data: data, Program: term.Version(), Now: time.Now}
			ctx, done := toldOn(command)
			made, err := source.Write(ctx, args[0])
			done()
			if err != nil {
				return found(command.Context(), err)
			}
			return tell(command.OutOrStdout(), asJSON, made, "Backed up "+data+" to "+args[0])
		},
	}
	dataFlags(command, &data, &asJSON)
	return command
}

// RestoreCommand is "tandem restore".
func RestoreCommand() *cobra.Command {
	var data string
	var asJSON bool
	command := &cobra.Command{
		Use:   "restore FILE --data FOLDER",
		Short: "Make a data folder of a backup",
		Long: `Make a data folder of a backup. The folder must be empty, or not there: a
server's data is never replaced. Everything is checked before the database gets
its place; if that fails, or is interrupted, the folder holds no data.

Trials that ran when the backup was taken are given to workers again, from the
checkpoints they had.`,
		Example: `  tandem restore tandem-2026-03-29.tar --data /srv/tandem
  tandem serve --data /srv/tandem`,
		Args: term.Arguments(1, "the backup's file"),
		RunE: func(command *cobra.Command, args []string) error {
			ctx, done := toldOn(command)
			restored, err := backup.Restore(ctx, args[0], data)
			done()
			if err != nil {
				return found(command.Context(), err)
			}
			taken := restored.Created.Local().Format("2006-01-02 15:04:05")
			return tell(command.OutOrStdout(), asJSON, restored, fmt.Sprintf("Restored %s, taken %s by tandem %s, to %s", args[0], taken, restored.Program, data))
		},
	}
	dataFlags(command, &data, &asJSON)
	command.MarkFlagRequired("data") //nolint:errcheck // the flag is there
	return command
}

// VerifyCommand is "tandem verify".
func VerifyCommand() *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "verify [FOLDER]",
		Short: "Check every row and every checkpoint of a data folder",
		Long: `Read a data folder's database and checkpoints from beginning to end and compare
all of it with the checksums that were written with it. It says all that is
wrong, and what to do about it; the exit code is 0 if nothing is. It changes
nothing, and the server may be running.`,
		Example: `  tandem verify
  tandem verify /srv/tandem --json`,
		Args: cobra.MaximumNArgs(1),
		RunE: func(command *cobra.Command, args []string) error {
			data := defaultData()
			if len(args) > 0 {
				data = args[0]
			}
			ctx, done := toldOn(command)
			seen, err := backup.Verify(ctx, data)
			done()
			if err != nil {
				return found(command.Context(), err)
			}
			return tell(command.OutOrStdout(), asJSON, seen, "All of "+data+" is as it was written")
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}

// toldOn is the command's context, with a bar on its terminal, if it has one. done
// takes the bar away.
func toldOn(command *cobra.Command) (ctx context.Context, done func()) {
	shown := term.NewTransfer(command.ErrOrStderr(), "", 0)
	return backup.WithProgress(command.Context(), shown.Update), shown.End
}

func dataFlags(command *cobra.Command, data *string, asJSON *bool) {
	command.Flags().StringVar(data, "data", defaultData(), "the server's data folder")
	command.Flags().BoolVar(asJSON, "json", false, "print JSON for scripts")
}

// found is what a check found: no server is asked here, so that nothing that is
// unavailable is one that did not answer.
func found(ctx context.Context, err error) error {
	if problem.Is(err, problem.Unavailable) && ctx.Err() == nil {
		return errors.New(err.Error())
	}
	return err
}

// tell prints what there is.
func tell(out io.Writer, asJSON bool, m backup.Manifest, did string) error {
	if asJSON {
		return term.WriteJSON(out, m)
	}
	kept := fmt.Sprintf("%d artifacts, %.1f MiB", m.Artifacts, float64(m.Bytes)/(1<<20))
	if m.Bucket != "" {
		kept = "in " + m.Bucket + ", which is not part of this"
	}
	_, err := fmt.Fprintf(out, "%s.\nDatabase: %s. Checkpoints: %s.\n", did, m.Contents, kept)
	return err
}
