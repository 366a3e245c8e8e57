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

func pauseCommand(flags *term.Flags) *cobra.Command {
	return changing(flags, &cobra.Command{
		Use:   "pause STUDY",
		Short: "Pause a study: running trials checkpoint after their epoch and wait",
		Example: `  tandem study pause lenet-fashion-mnist
  tandem study resume lenet-fashion-mnist`,
	}, (*rest.Client).PauseStudy)
}

func resumeCommand(flags *term.Flags) *cobra.Command {
	return changing(flags, &cobra.Command{
		Use:     "resume STUDY",
		Short:   "Let a paused study go on where it was",
		Example: `  tandem study resume lenet-fashion-mnist`,
	}, (*rest.Client).ResumeStudy)
}

func stopCommand(flags *term.Flags) *cobra.Command {
	return changing(flags, &cobra.Command{
		Use:     "stop STUDY",
		Short:   "End a study now; what was measured stays",
		Example: `  tandem study stop lenet-fashion-mnist`,
	}, (*rest.Client).StopStudy)
}

// changing is a command that changes a study's status.
func changing(flags *term.Flags, command *cobra.Command, change func(*rest.Client, context.Context, string) (protocol.StudyView, error)) *cobra.Command {
	return onStudy(flags, command, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		view, err := change(client, ctx, study)
		if err != nil {
			return err
		}
		return term.SayAnswer(out, flags.JSON, view, "Study %s is %s\n", format.Plain(view.Name), view.Status)
	})
}

func deleteCommand(flags *term.Flags) *cobra.Command {
	var sure bool
	command := &cobra.Command{
		Use:               "delete STUDY",
		Short:             "Delete a study with its trials, logs and checkpoints",
		Example:           `  tandem study delete lenet-fashion-mnist --yes`,
		Args:              term.Arguments(1, "the name or the id of a study"),
		ValidArgsFunction: completeStudies(&flags.Server, 1),
		RunE: func(command *cobra.Command, args []string) error {
			client, err := flags.Server.Open()
			if err != nil {
				return err
			}
			view, err := client.Study(command.Context(), args[0])
			if err != nil {
				return err
			}
			if !sure {
				question := fmt.Sprintf("Delete study %s with its %s?", format.Plain(view.Name), format.Count(view.Progress.Created, "trial"))
				if err := term.Confirm(command, question); err != nil {
					return err
				}
			}
			if err := client.DeleteStudy(command.Context(), view.ID); err != nil {
				return err
			}
			return term.SayAnswer(command.OutOrStdout(), flags.JSON, map[string]string{"deleted": view.ID}, "Study %s was deleted\n", format.Plain(view.Name))
		},
	}
	command.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	return command
}
