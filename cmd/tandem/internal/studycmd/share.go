package studycmd

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func shareCommand(flags *term.Flags) *cobra.Command {
	var groups []string
	var private bool
	command := onStudy(flags, &cobra.Command{
		Use:   "share STUDY",
		Short: "Share a study with groups of users",
		Long: `Share a study with these groups, and no others: 'tandem group list' shows yours.
Members see it with its checkpoints; editors also steer it.`,
		Example: `  tandem study share lenet-fashion-mnist --group ml
  tandem study share lenet-fashion-mnist --private`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		if private == (len(groups) > 0) {
			return term.Misuse("give --group, once or more, or --private, which shares the study with nobody")
		}
		shared, err := client.ShareStudy(ctx, study, groups...)
		if err != nil {
			return err
		}
		if private {
			return term.SayAnswer(out, flags.JSON, shared, "Study %s is shared with nobody\n", format.Plain(study))
		}
		return term.SayAnswer(out, flags.JSON, shared, "Study %s is shared with %s\n", format.Plain(study), format.Plain(strings.Join(shared.Groups, ", ")))
	})
	command.Flags().StringSliceVar(&groups, "group", nil, "a group (repeatable)")
	command.Flags().BoolVar(&private, "private", false, "share it with nobody")
	return command
}

func transferCommand(flags *term.Flags) *cobra.Command {
	var to protocol.Ownership
	command := onStudy(flags, &cobra.Command{
		Use:   "transfer STUDY --to USER",
		Short: "Give a study to another user",
		Long: `Give a study to another user, as its owner or an administrator. What its trials
hold and use from then on counts for that user; what they have used stays with who had it.
Links and groups stay, and trials on the workers of who had it go on elsewhere.`,
		Example: `  tandem study transfer lenet-fashion-mnist --to bob
  tandem study transfer alice:lenet-fashion-mnist --to bob --name lenet-alice`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		if to.Owner == "" {
			return term.Misuse("say who gets it: --to USER, or --to admin for the administrators")
		}
		view, err := client.TransferStudy(ctx, study, to)
		if err != nil {
			return err
		}
		return term.SayAnswer(out, flags.JSON, view, "Study %s is %s's\n", format.Plain(view.Name), format.Plain(view.Owner))
	})
	command.Flags().StringVar(&to.Owner, "to", "", "the user who gets it; admin: the administrators")
	command.Flags().StringVar(&to.Name, "name", "", "its name from then on (default: as before)")
	return command
}
