package studycmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/web/report"
)

func reportCommand(flags *term.Flags) *cobra.Command {
	var path string
	command := &cobra.Command{
		Use:   "report STUDY",
		Short: "Write one HTML file about a study, with charts, for mail and print",
		Long: `Write one HTML file about a study: its answer with how far to trust it, what it
cost, what is an estimate, charts (best value so far, learning curves by rung,
parallel coordinates, importance, Pareto front, timeline of the workers, system
configurations, edge deployments), the leaderboard and the definition.

The file needs no network and no script: it can be mailed and printed, and it
follows the reader's choice of light or dark. Of a large study it says what was
left out. The values of environment variables are not in it.`,
		Example: `  tandem study report lenet-fashion-mnist -o report.html
  tandem study report lenet-fashion-mnist -o - > report.html`,
		Args:              term.Arguments(1, "the name or the id of a study"),
		ValidArgsFunction: completeStudies(&flags.Server, 1),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := flags.Server.Open()
			if err != nil {
				return err
			}
			source, err := gather(command.Context(), client, args[0], command.ErrOrStderr())
			if err != nil {
				return err
			}
			return writeReport(command.OutOrStdout(), path, source, flags.JSON)
		},
	}
	command.Flags().StringVarP(&path, "output", "o", "", "file to write; - is standard output (default: the study's name with .html, in this folder)")
	return command
}

// gather asks the server for everything that a report is made of.
func gather(ctx context.Context, client *rest.Client, study string, progress io.Writer) (report.Source, error) {
	export, err := client.Export(ctx, study, "json")
	if err != nil {
		return report.Source{}, err
	}
	defer export.Close()
	moved := term.NewTransfer(progress, "Reading "+format.Plain(study), 0)
	source, err := report.Read(moved.Reader(export))
	moved.End()
	if err != nil {
		return source, err
	}
	source.Server, source.Written, source.Program = client.URL(), time.Now(), term.Version()
	// The rest the page can do without: a token may not open it, or a server of
	// before not have it.
	importance, err := client.Importance(ctx, source.Study.ID, protocol.ImportanceQuery{})
	switch {
	case err == nil:
		source.Importance = &importance
	case ctx.Err() != nil || problem.Is(err, problem.Unavailable):
		return source, err
	}
	workers, err := client.Workers(ctx)
	if err != nil && (ctx.Err() != nil || problem.Is(err, problem.Unavailable)) {
		return source, err
	}
	for _, worker := range workers {
		source.Workers[worker.ID] = worker.Name
	}
	return source, nil
}

// writeReport writes the page to the file, whole or not at all, and says where.
func writeReport(out io.Writer, path string, source report.Source, asJSON bool) error {
	if path == "-" {
		if asJSON {
			return term.Misuse("--json says where the report was written, and -o - writes it to the same place: give one of them")
		}
		return report.Write(out, source)
	}
	if path == "" {
		path = fileName(source.Study.Name) + ".html"
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(report.Write(writer, source)) }()
	err := term.SaveAs(path, reader)
	reader.Close() //nolint:errcheck // ends the writing of a page that could not be saved
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	if asJSON {
		return term.WriteJSON(out, map[string]any{"report": path, "bytes": info.Size()})
	}
	_, err = fmt.Fprintf(out, "Report of %s written to %s (%s). It needs no network: open it, mail it or print it.\n", format.Plain(source.Study.Name), path, format.Size(info.Size()))
	return err
}

// fileName is a study's name as a file can be called.
func fileName(name string) string {
	safe := strings.Map(func(r rune) rune {
		switch {
		case r >= 'a' && r <= 'z', r >= 'A' && r <= 'Z', r >= '0' && r <= '9', r == '-', r == '_', r == '.':
			return r
		}
		return '_'
	}, name)
	if safe = strings.TrimLeft(safe, ".-"); safe == "" {
		return "study"
	}
	return safe
}
