package studycmd

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

func tagCommand(flags *term.Flags) *cobra.Command {
	var remove []string
	var number int
	command := &cobra.Command{
		Use:   "tag STUDY [TAG ...]",
		Short: "Tag a study or one of its trials, take tags off, or show them",
		Long: `Tag a study, or with --trial one of its trials: words to find it by, on the web
page and in exports. Without a tag and without --remove, the tags are shown.`,
		Example: `  tandem study tag lenet-fashion-mnist paper baseline
  tandem study tag lenet-fashion-mnist --trial 12 odd --remove checked`,
		ValidArgsFunction: completeStudies(&flags.Server, 1),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return term.Misuse("give the name or the id of a study, and tags")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			amendment := trial.Amendment{AddTags: args[1:], RemoveTags: remove}
			return subject{args[0], number}.annotate(command, flags, amendment, func(out io.Writer, now trial.Annotation) error {
				_, err := fmt.Fprintln(out, format.Plain(strings.Join(now.Tags, " ")))
				return err
			})
		},
	}
	command.Flags().StringSliceVar(&remove, "remove", nil, "tags to take off")
	trialFlag(command, &number)
	return command
}

func noteCommand(flags *term.Flags) *cobra.Command {
	var number int
	command := &cobra.Command{
		Use:   "note STUDY [TEXT]",
		Short: "Write a note about a study or one of its trials, or show it",
		Long: `Write a note about a study, or with --trial about one of its trials, as plain
text in place of the one that is there; "-" reads it from standard input, and
empty text removes it. Without a text the note is shown.`,
		Example: `  tandem study note lenet-fashion-mnist "with the new augmentation"
  tandem study note lenet-fashion-mnist --trial 12 "diverges behind epoch 3"`,
		ValidArgsFunction: completeStudies(&flags.Server, 1),
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 || len(args) > 2 {
				return term.Misuse("give the name or the id of a study, and the note as one text in quotes")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			var amendment trial.Amendment
			if len(args) == 2 {
				text := args[1]
				if text == "-" {
					read, err := io.ReadAll(io.LimitReader(command.InOrStdin(), 2*trial.MaxNoteBytes))
					if err != nil {
						return err
					}
					text = string(read)
				}
				amendment.Note = &text
			}
			return subject{args[0], number}.annotate(command, flags, amendment, func(out io.Writer, now trial.Annotation) error {
				if now.Note == "" {
					return nil
				}
				lines := strings.Split(now.Note, "\n")
				for i, line := range lines {
					lines[i] = format.Plain(line)
				}
				_, err := fmt.Fprintln(out, strings.Join(lines, "\n"))
				return err
			})
		},
	}
	trialFlag(command, &number)
	return command
}

func trialFlag(command *cobra.Command, number *int) {
	command.Flags().IntVar(number, "trial", -1, "the number of a trial of the study, in place of the study itself")
}

// subject is what is annotated: a study, or the trial of it with the number,
// unless that is -1.
type subject struct {
	study  string
	number int
}

// annotate changes what is written about the subject, if anything is to be
// changed, and shows what is there then.
func (s subject) annotate(command *cobra.Command, flags *term.Flags, amendment trial.Amendment, show func(io.Writer, trial.Annotation) error) error {
	if s.number < -1 {
		return term.Misuse("--trial is the number of a trial, from 0 on, not %s", strconv.Itoa(s.number))
	}
	client, err := flags.Server.Open()
	if err != nil {
		return err
	}
	now, err := s.amend(command.Context(), client, amendment)
	if err != nil {
		return err
	}
	return term.PrintAnswer(command.OutOrStdout(), flags.JSON, now, show)
}

// amend asks the server for that.
func (s subject) amend(ctx context.Context, client *rest.Client, amendment trial.Amendment) (trial.Annotation, error) {
	asks := len(amendment.AddTags)+len(amendment.RemoveTags) == 0 && amendment.Note == nil
	switch {
	case asks && s.number < 0:
		view, err := client.Study(ctx, s.study)
		return view.Annotation, err
	case asks:
		detail, err := client.Trial(ctx, s.study, s.number)
		return detail.Trial.Annotation, err
	case s.number < 0:
		return client.AnnotateStudy(ctx, s.study, amendment)
	default:
		return client.AnnotateTrial(ctx, s.study, s.number, amendment)
	}
}
