package studycmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/study/journal"
	"github.com/tandem-tune/tandem/study/session"
)

func replayCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:   "replay STUDY",
		Short: "Prove that a study's search decides again what it decided",
		Long: `Prove that a study's search decides again what it decided: its log is fetched,
and every step is put to a new search on this machine, from the first one on.
Each configuration and each promotion must come out the same, bit for bit. The
exit code is 1 at the first one that does not.`,
		Example: `  tandem study replay lenet-fashion-mnist`,
	}, func(ctx context.Context, client *rest.Client, name string, out io.Writer) error {
		return replay(ctx, client, name, flags.JSON, out)
	})
}

// recorded is the part of a study's export that a replay needs.
type recorded struct {
	Study struct {
		Name       string          `json:"name"`
		Definition json.RawMessage `json:"definition"`
	} `json:"study"`
	Events []journal.Event `json:"events"`
}

func replay(ctx context.Context, client *rest.Client, name string, asJSON bool, out io.Writer) error {
	answer, err := client.Export(ctx, name, "json")
	if err != nil {
		return err
	}
	defer answer.Close()
	var log recorded
	if err := json.NewDecoder(answer).Decode(&log); err != nil {
		return fmt.Errorf("read the export of study %s: %w", name, err)
	}
	def, err := definition.Stored(log.Study.Definition)
	if err != nil {
		return err
	}
	decisions, err := session.Replay(def, log.Events)
	if err != nil {
		return fmt.Errorf("%d decisions came out the same, and then: %w", decisions, err)
	}
	return term.SayAnswer(out, asJSON, map[string]any{"study": log.Study.Name, "decisions": decisions, "same": true}, "Study %s: all %d decisions of its search came out the same.\n", format.Plain(log.Study.Name), decisions)
}
