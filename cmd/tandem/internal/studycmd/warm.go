package studycmd

import (
	"context"
	"fmt"
	"io"
	"slices"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/importer"
	"github.com/tandem-tune/tandem/study/definition"
)

// warmFlags say what a study begins with.
type warmFlags struct {
	file string
	from []string
}

func (f *warmFlags) register(command *cobra.Command) {
	command.Flags().StringVar(&f.file, "warm-start", "", "begin with the results of this CSV file")
	command.Flags().StringArrayVar(&f.from, "warm-start-from", nil, "begin with the results of this earlier study of the server; may be given several times")
}

// apply names the earlier studies in the definition and reads the file.
func (f *warmFlags) apply(def *definition.Definition, notes io.Writer) ([]protocol.Observation, error) {
	if len(f.from) > 0 {
		warm := definition.WarmStart{}
		if def.Search.WarmStart != nil {
			warm = *def.Search.WarmStart
			warm.Studies = slices.Clone(warm.Studies)
		}
		for _, study := range f.from {
			if !slices.Contains(warm.Studies, study) {
				warm.Studies = append(warm.Studies, study)
			}
		}
		def.Search.WarmStart = &warm
	}
	if f.file == "" {
		return nil, nil
	}
	results, err := importer.ReadResults(f.file, *def)
	if err != nil {
		return nil, term.Misuse("%w", err)
	}
	for _, note := range results.Notes {
		fmt.Fprintln(notes, format.Plain(note))
	}
	return results.Observations, nil
}

// createWarm sends a definition with what it begins with, if there is any.
func createWarm(ctx context.Context, client *rest.Client, def definition.Definition, prior []protocol.Observation) (protocol.StudyView, error) {
	if len(prior) == 0 {
		return Create(ctx, client, def)
	}
	file, _, err := document(def)
	if err != nil {
		return protocol.StudyView{}, err
	}
	return client.CreateWarm(ctx, file, prior)
}

// printWarm says what a study began with.
func printWarm(out io.Writer, view protocol.StudyView) {
	if view.Definition.Search.WarmStart == nil {
		return
	}
	for _, source := range view.Definition.Search.WarmStart.Sources {
		skipped := ""
		if source.Skipped > 0 {
			skipped = fmt.Sprintf(" (%d left out: %s)", source.Skipped, format.Plain(source.Reason))
		}
		fmt.Fprintf(out, "Begins with %s of %s%s\n", format.Count(source.Observations, "result"), format.Plain(source.Name), skipped)
	}
}
