package truthcmd

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

// maxTruthBytes bounds a file of ground truth: 2,000 records each of some tens
// of types of machine.
const maxTruthBytes = 1 << 30

func truthExportCommand(flags *truthFlags) *cobra.Command {
	var output string
	command := &cobra.Command{
		Use:   "export",
		Short: "Print the ground truth as one JSON document, for another server",
		Example: `  tandem ground-truth export --output ground-truth.json
  tandem ground-truth export --machine "AMD EPYC 7763 64-Core Processor, 128 cores" | ssh other tandem ground-truth import -`,
		Args: term.Arguments(0, "no arguments"),
	}
	command.RunE = flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
		truth, err := client.GroundTruth(ctx, flags.machine)
		if err != nil {
			return err
		}
		if flags.machine != "" && len(truth.Records) == 0 {
			return fmt.Errorf("nothing is known of a machine %q: see 'tandem ground-truth list'", format.Plain(flags.machine))
		}
		if output == "" {
			return writeTruth(out, truth)
		}
		if err := writeTruthFile(output, truth); err != nil {
			return err
		}
		_, err = fmt.Fprintf(command.ErrOrStderr(), "%s written to %s\n", format.Count(len(truth.Records), "record"), output)
		return err
	})
	flags.ofMachine(command, "only this type of machine")
	command.Flags().StringVarP(&output, "output", "o", "", "write to this file, not to standard output")
	return command
}

// writeTruth prints the document with one record a line.
func writeTruth(out io.Writer, truth protocol.GroundTruth) error {
	var text bytes.Buffer
	fmt.Fprintf(&text, "{\"version\": %d, \"records\": [", truth.Version)
	for i, record := range truth.Records {
		encoded, err := json.Marshal(record)
		if err != nil {
			return err
		}
		if i > 0 {
			text.WriteByte(',')
		}
		text.WriteByte('\n')
		text.Write(encoded)
	}
	text.WriteString("\n]}\n")
	_, err := out.Write(text.Bytes())
	return err
}

func writeTruthFile(path string, truth protocol.GroundTruth) (err error) {
	file, err := os.Create(path)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, file.Close()) }()
	return writeTruth(file, truth)
}

func truthImportCommand(flags *truthFlags) *cobra.Command {
	command := &cobra.Command{
		Use:   "import FILE",
		Short: "Take in what another server exported; - is standard input",
		Long: `Take in what another server exported; - is standard input. Running studies use
it at once. Of a record that this server has too the newer version stays, so that
importing the same file again changes nothing.

A large file is sent in parts, each of which is taken whole or not at all.`,
		Example: `  tandem ground-truth import ground-truth.json`,
		Args:    term.Arguments(1, "a file that 'tandem ground-truth export' wrote, or - for standard input"),
		RunE: func(command *cobra.Command, args []string) error {
			truth, err := term.ReadInput(command.Context(), func() (protocol.GroundTruth, error) { return readTruth(args[0], command.InOrStdin()) })
			if command.Context().Err() != nil {
				return command.Context().Err()
			}
			if err != nil {
				return term.Misuse("%w", err)
			}
			client, err := flags.Server.Open()
			if err != nil {
				return err
			}
			reply, err := client.ImportGroundTruth(command.Context(), truth)
			if err != nil && reply.Imported > 0 {
				return fmt.Errorf("%s imported, then: %w", format.Count(reply.Imported, "record"), err)
			}
			if err != nil {
				return err
			}
			return term.SayAnswer(command.OutOrStdout(), flags.JSON, reply, "%s imported, %d skipped\n", format.Count(reply.Imported, "record"), reply.Skipped)
		},
	}
	flags.asJSON(command)
	return command
}

// readTruth reads a file of ground truth. What it cannot hold is an error: a
// newer program wrote it, or another one.
func readTruth(path string, stdin io.Reader) (protocol.GroundTruth, error) {
	var truth protocol.GroundTruth
	data, err := term.ReadBounded(path, stdin, maxTruthBytes)
	if err != nil {
		return truth, err
	}
	var document struct {
		Version *int `json:"version"`
	}
	if err := json.Unmarshal(data, &document); err != nil || document.Version == nil {
		return truth, fmt.Errorf("%s is not what 'tandem ground-truth export' writes", path)
	}
	if *document.Version != protocol.GroundTruthVersion {
		return truth, fmt.Errorf("%s is a ground truth of version %d, and this program reads version %d: use the tandem that wrote it, or a newer one",
			path, *document.Version, protocol.GroundTruthVersion)
	}
	decoder := json.NewDecoder(bytes.NewReader(data))
	decoder.DisallowUnknownFields()
	if err := decoder.Decode(&truth); err != nil {
		return truth, fmt.Errorf("%s: %w", path, err)
	}
	return truth, nil
}
