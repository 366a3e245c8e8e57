package poolcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func modelsCommand(server *term.Connection) *cobra.Command {
	var watching, asJSON bool
	command := &cobra.Command{
		Use:   "models",
		Short: "Show what was learned of trainings on GPUs: what they use, and who disturbs whom",
		Long: `Show, for each type of GPU, what the server has learned of trainings there: how
much of the GPU one uses, by its architecture and batch, before it ever ran, and
how fast two run that share one. With it goes how far that was off where it was
told of trainings that had been hidden, and what decides; or why nothing is told.
All that is told from it is an estimate (docs/colocation.md).`,
		Example: `  tandem pool models
  tandem pool models --json | jq '.gpu_models[].known'`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			return term.Answer[protocol.Pool]{
				JSON: asJSON, Watch: watching, Print: func(out io.Writer, pool protocol.Pool) error { return printGPUModels(out, pool.GPUModels) },
				Ask: func(ctx context.Context, client *rest.Client) (protocol.Pool, error) { return client.Pool(ctx) },
			}.Show(command, server)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	term.AddWatchFlag(command, &watching)
	return command
}

func printGPUModels(out io.Writer, models []protocol.PoolGPUModel) error {
	if len(models) == 0 {
		_, err := fmt.Fprintln(out, "No training was seen on a GPU yet. A worker tells what one uses where the driver does; a script says what it trains by trial.save_model.")
		return err
	}
	var rows [][]string
	for _, one := range models {
		rows = append(rows, []string{format.Plain(one.GPU), fmt.Sprint(one.Trainings), fmt.Sprint(one.Architectures), fmt.Sprint(one.LearnedFrom), shownErrors(one.Known), shownErrors(one.Unseen), fmt.Sprint(one.Pairs.Seen)})
	}
	if err := term.Table(out, []string{"GPU", "TRAININGS SEEN", "ARCHITECTURES", "LEARNED FROM", "OFF BY (ESTIMATES)", "OF A NEW ARCHITECTURE", "PAIRS SEEN"}, rows); err != nil {
		return err
	}
	for _, one := range models {
		printGPUModel(out, one)
	}
	return nil
}

// shownErrors is how far predictions were off: for half of them by no more.
func shownErrors(off *protocol.GPUErrors) string {
	if off == nil {
		return "-"
	}
	return fmt.Sprintf("%.2f, memory %.0f%%", off.Utilization, 100*off.Memory)
}

func printGPUModel(out io.Writer, one protocol.PoolGPUModel) {
	fmt.Fprintf(out, "\n%s\n", format.Plain(one.GPU))
	say := func(text string) { fmt.Fprintf(out, "  %s\n", text) }
	switch {
	case one.LearnedFrom == 0:
		say("what a training uses is not predicted: " + format.Plain(one.Reason))
	case one.Unseen == nil:
		say("new architectures are not predicted: " + format.Plain(one.UnseenReason))
	}
	if len(one.Importances) > 0 {
		var parts []string
		for _, feature := range one.Importances {
			parts = append(parts, fmt.Sprintf("%s %.0f%%", feature.Feature, 100*feature.Share))
		}
		say("what decides the utilization: " + strings.Join(parts, ", "))
	}
	if one.Known != nil {
		say(fmt.Sprintf("RMSLE of the utilization in percent: %s", shownRMSLE(one)))
	}
	for _, way := range one.Pairs.Learned {
		say(fmt.Sprintf("pairs that were never seen are told by %s, from %s: their speeds were off by %.2f where they were hidden, the mean's by %.2f", shownBasis(way.Basis), format.Count(way.Pairs, "pair"), way.Off, way.PlainOff))
	}
	if one.Pairs.Reason != "" {
		say("pairs that were never seen are not told: " + format.Plain(one.Pairs.Reason))
	}
}

func shownRMSLE(one protocol.PoolGPUModel) string {
	text := fmt.Sprintf("%.3f", one.Known.RMSLE)
	if one.Unseen != nil {
		text += fmt.Sprintf(", of architectures that were hidden %.3f", one.Unseen.RMSLE)
	}
	return text
}

func shownBasis(basis string) string {
	if basis == "factors" {
		return "what each did beside others"
	}
	return "what others did beside one of the two"
}
