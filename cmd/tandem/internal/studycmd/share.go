package studycmd

import (
	"context"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
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
