package studycmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func adviseCommand(flags *term.Flags) *cobra.Command {
	return onStudy(flags, &cobra.Command{
		Use:   "advise STUDY",
		Short: "Say what the results tell of the space",
		Long: `Say what the results tell of the space: parameters at an end of whose range the
best trials lie, values at which trials fail, parameters of which one says which
values of the other are better, and of an ended search those that hardly matter and
whether it still got better. Each comes with its evidence and what to do about it.
What chance would show as well is not named.`,
		Example: `  tandem study advise lenet-fashion-mnist
  tandem study advise lenet-fashion-mnist --json | jq '.pieces[].parameter'`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		return term.Answer(out, flags.JSON, PrintAdvice)(client.Advice(ctx, study))
	})
}

// PrintAdvice prints what the results tell of a space, with the evidence.
func PrintAdvice(out io.Writer, answer protocol.Advice) error {
	for _, one := range answer.Pieces {
		fmt.Fprintf(out, "%s\n  %s\n  %s\n\n", format.Plain(one.Found), format.Plain(one.Evidence), format.Plain(one.Do))
	}
	if len(answer.Pieces) == 0 {
		fmt.Fprintln(out, "The results say nothing of the space that chance would not show as well.")
	}
	for _, note := range answer.Notes {
		fmt.Fprintf(out, "Note: %s\n", format.Plain(note))
	}
	return nil
}
