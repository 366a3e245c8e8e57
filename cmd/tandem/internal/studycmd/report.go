package studycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/web/ui"
)

func reportCommand(flags *term.Flags) *cobra.Command {
	var path string
	command := onStudy(flags, &cobra.Command{
		Use:   "report STUDY",
		Short: "Write one HTML file about a study, with charts, for mail and print",
		Long: `Write one HTML file about a study: its page and its charts, as the server shows
them, and the definition. The charts answer to the pointer, change between rungs
and can be saved as pictures and data.

The file needs a browser and no network: it can be mailed and printed. Links lead
to the server. The leaderboard has the first 100 trials; of a large study charts
have a sample, and say so. The values of environment variables are not in it.`,
		Example: `  tandem study report lenet-fashion-mnist -o report.html
  tandem study report lenet-fashion-mnist -o - > report.html`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		report, err := gather(ctx, client, study)
		if err != nil {
			return err
		}
		return writeReport(out, path, report, flags.JSON)
	})
	command.Flags().StringVarP(&path, "output", "o", "", "file to write; - is standard output (default: the study's name with .html, in this folder)")
	return command
}

// gather asks the server for everything that the report's page asks for.
func gather(ctx context.Context, client *rest.Client, study string) (ui.Report, error) {
	view, err := client.Study(ctx, study)
	if err != nil {
		return ui.Report{}, err
	}
	for name := range view.Definition.Environment { // what it is set to stays at home
		view.Definition.Environment[name] = "..."
	}
	whole, err := json.Marshal(view)
	if err != nil {
		return ui.Report{}, err
	}
	definition, err := json.MarshalIndent(view.Definition, "", "  ")
	if err != nil {
		return ui.Report{}, err
	}
	report := ui.Report{
		Study: view.ID, Name: view.Name, View: whole, Definition: string(definition), Objectives: len(view.Definition.Objectives), Rungs: len(view.Rungs),
		Server: client.URL(), Written: time.Now(), Program: term.Version(), Over: view.Status.Over(),
	}
	return report, report.Gather(func(path string) (json.RawMessage, error) { return client.StudyDocument(ctx, view.ID, path) })
}

// writeReport writes the page to the file, whole or not at all, and says where.
func writeReport(out io.Writer, path string, report ui.Report, asJSON bool) error {
	if path == "-" {
		if asJSON {
			return term.Misuse("--json says where the report was written, and -o - writes it to the same place: give one of them")
		}
		return ui.WriteReport(out, report)
	}
	if path == "" {
		path = fileName(report.Name) + ".html"
	}
	reader, writer := io.Pipe()
	go func() { writer.CloseWithError(ui.WriteReport(writer, report)) }()
	err := files.Write(path, reader, 0o600)
	reader.Close() //nolint:errcheck // ends the writing of a page that could not be saved
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	info, err := os.Stat(path)
	if err != nil {
		return fmt.Errorf("write the report: %w", err)
	}
	return term.SayAnswer(out, asJSON, map[string]any{"report": path, "bytes": info.Size()}, "Report of %s written to %s (%s). It needs no network: open it, mail it or print it.\n", format.Plain(report.Name), path, format.Size(info.Size()))
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
