// Package datasetcmd encrypts data sets, publishes, lists and deletes them: "tandem dataset".
package datasetcmd

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
)

// Command is "tandem dataset".
func Command() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "dataset",
		Short: "Encrypt data sets for workers, and have the server keep them",
		Long: `Encrypt data sets for workers, and have the server keep them: it cannot read them.
A study file names them in encryption.datasets, and its script finds the folder in
TANDEM_DATA_NAME, or by tandem.dataset("NAME"). docs/encryption.md has an example.`,
	}, encryptCommand(), publishCommand(&flags), listCommand(&flags), deleteCommand(&flags))
}

// extension is that of encrypted data sets.
const extension = ".tde"

// whole bounds what is packed; the server bounds what it takes.
var whole = artifact.Limits{Bytes: 1 << 40, Files: 100_000_000}

func encryptCommand() *cobra.Command {
	var name, identity, output string
	var recipients []string
	command := &cobra.Command{
		Use:   "encrypt FOLDER",
		Short: "Encrypt a folder for the workers that hold a key",
		Long: `Encrypt a folder for the workers that hold a key, into one file. The identity says
that it is yours: without it, whoever knows the public key could make one up.`,
		Example: `  tandem dataset encrypt ./data --name scans --identity workers.key
  tandem dataset encrypt ./data --name scans --identity workers.key --recipient age1... --output scans.tde`,
		Args: term.Arguments(1, "the folder with the data"),
		RunE: func(command *cobra.Command, args []string) error {
			if !definition.DatasetName.MatchString(name) {
				return term.Misuse("--name (%q) must be 1 to 40 lower-case letters, digits and _, a letter first", name)
			}
			keys, err := sealed.Read(identity, recipients)
			if err != nil || keys == nil {
				return term.Misuse("%w", errors.Join(err, missing(identity)))
			}
			if output == "" {
				output = name + extension
			}
			box := artifact.Box{Keys: keys, Recipients: append(keys.Recipients()[:1:1], recipients...)}
			if err := encrypt(box, args[0], output, sealed.Label{Dataset: name}); err != nil {
				return err
			}
			_, err = fmt.Fprintf(command.OutOrStdout(), "Encrypted %s to %s into %s: 'tandem dataset publish %s' gives it to the server\n", args[0], format.Count(len(box.Recipients), "key"), output, output)
			return err
		},
	}
	command.Flags().StringVar(&name, "name", "", "what studies call it")
	command.Flags().StringVar(&identity, "identity", "", "file of the workers' key ('tandem keys create' makes one)")
	command.Flags().StringSliceVar(&recipients, "recipient", nil, "public key whose holder may read it besides (repeatable)")
	command.Flags().StringVarP(&output, "output", "o", "", "new file (default: NAME"+extension+")")
	return command
}

func missing(identity string) error {
	if identity == "" {
		return errors.New("--identity is missing: name the file of the workers' key")
	}
	return nil
}

// encrypt writes the file, or leaves none.
func encrypt(box artifact.Box, folder, path string, label sealed.Label) error {
	file, err := os.OpenFile(path, os.O_WRONLY|os.O_CREATE|os.O_EXCL, 0o600)
	if err != nil {
		return fmt.Errorf("--output: %w", err)
	}
	err = box.Pack(folder, file, whole, label)
	if err = errors.Join(err, file.Sync(), file.Close()); err != nil {
		return errors.Join(fmt.Errorf("%s: %w", folder, err), os.Remove(path))
	}
	return nil
}

func publishCommand(flags *term.Flags) *cobra.Command {
	var name string
	command := &cobra.Command{
		Use:   "publish FILE",
		Short: "Send an encrypted data set to the server, and print the lines for study files",
		Example: `  tandem dataset publish scans.tde
  tandem dataset publish /mnt/new/2026.tde --name scans`,
		Args: term.Arguments(1, "a file that 'tandem dataset encrypt' wrote"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			if name == "" {
				name = strings.TrimSuffix(filepath.Base(args[0]), extension)
			}
			hash, size, err := look(args[0])
			if err != nil {
				return err
			}
			moved := term.NewTransfer(os.Stderr, "Sending "+format.Plain(name), size)
			err = client.PutArtifact(ctx, hash, size, func() (io.ReadCloser, error) {
				file, err := os.Open(args[0])
				return struct {
					io.Reader
					io.Closer
				}{moved.Reader(file), file}, err
			})
			moved.End()
			if problem.Is(err, problem.Exhausted) {
				return fmt.Errorf("%s has %s: %w: make several data sets of it, which a study can name together", args[0], format.Size(size), err)
			}
			if err != nil {
				return err
			}
			made, err := client.PublishDataset(ctx, protocol.DatasetRequest{Name: name, Artifact: hash})
			if err != nil {
				return err
			}
			return term.SayAnswer(out, flags.JSON, made, "Published %s, %s. In a study file:\n\nencryption:\n  datasets:\n    %s: %s\n", made.Name, format.Size(made.Bytes), made.Name, made.Artifact)
		}),
	}
	command.Flags().StringVar(&name, "name", "", "the name that it was encrypted with (default: the file's)")
	return command
}

// look is the file's SHA-256 and size. Nothing is sent that is not encrypted.
func look(path string) (hash string, size int64, err error) {
	file, err := os.Open(path)
	if err != nil {
		return "", 0, err
	}
	defer file.Close()
	start := make([]byte, len(sealed.Magic))
	if _, err := io.ReadFull(file, start); err != nil || string(start) != sealed.Magic {
		return "", 0, problem.New(problem.Invalid, "%s is not encrypted, and nothing was sent: 'tandem dataset encrypt' makes such a file", path)
	}
	hashed := sha256.New()
	hashed.Write(start) // never fails
	rest, err := io.Copy(hashed, file)
	return hex.EncodeToString(hashed.Sum(nil)), rest + int64(len(start)), err
}

func listCommand(flags *term.Flags) *cobra.Command {
	return term.List[protocol.Dataset]{
		Short: "List the data sets, the newest of a name first", Example: `  tandem dataset list`, Key: "datasets",
		Get: (*rest.Client).Datasets, Print: printDatasets,
	}.Command(flags)
}

func printDatasets(out io.Writer, list []protocol.Dataset) error {
	heading := []string{"NAME", "OWNER", "SIZE", "PUBLISHED", "SHA-256"}
	return term.Rows(out, list, "There is no data set: tandem dataset publish sends one", heading, func(one protocol.Dataset) []string {
		return []string{one.Name, one.Owner, format.Size(one.Bytes), term.FormatTime(&one.Published, ""), one.Artifact}
	})
}

func deleteCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "delete SHA256", Short: "Delete a data set; a study that is not over keeps its own",
		Example: `  tandem dataset delete 9f86d081884c7d659a2feaa0c55ad015a3bf4f1b2b0b822cd15d6c15b0f00a08`,
		What:    "the SHA-256 of a data set, as 'tandem dataset list' shows it",
		Do:      (*rest.Client).DeleteDataset, Done: "deleted", Said: "The data set %s was deleted",
	}.Command(flags)
}
