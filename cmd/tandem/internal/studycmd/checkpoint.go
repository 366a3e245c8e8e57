package studycmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/trial"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
)

// downloads bounds what is unpacked from a checkpoint.
var downloads = artifact.Limits{Bytes: 1 << 40, Files: 1_000_000}

func checkpointCommand(flags *term.Flags) *cobra.Command {
	var identity, folder string
	number := -1
	command := onStudy(flags, &cobra.Command{
		Use:   "checkpoint STUDY",
		Short: "Download the last checkpoint of the winner, or of a trial, and decrypt it",
		Example: `  tandem study checkpoint lenet-fashion-mnist --output model
  tandem study checkpoint lenet-fashion-mnist --trial 14 --output model --identity workers.key`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		keys, err := sealed.Read(identity, nil)
		if err != nil {
			return err
		}
		if folder == "" {
			return term.Misuse("--output is missing: name a new folder for the checkpoint's files")
		}
		view, err := client.Study(ctx, study)
		if err != nil {
			return err
		}
		id, kept, err := lastCheckpoint(ctx, client, view.ID, number)
		if err != nil {
			return err
		}
		body, err := client.Artifact(ctx, kept.Artifact)
		if err != nil {
			return err
		}
		defer body.Close()
		if err := os.Mkdir(folder, 0o700); err != nil {
			return fmt.Errorf("--output: name a new folder: %w", err)
		}
		moved := term.NewTransfer(os.Stderr, "Downloading "+format.Plain(study), kept.Bytes)
		box := artifact.Box{Keys: keys, Recipients: view.Definition.Recipients()}
		vouched, err := box.Open(moved.Reader(body), folder, downloads, artifact.LabelOf(view.ID, id, *kept))
		moved.End()
		if err != nil { // nothing stays of what is not whole, or another's
			return errors.Join(fmt.Errorf("the checkpoint of epoch %d: %w", kept.Epoch, err), os.RemoveAll(folder))
		}
		fmt.Fprintf(out, "Checkpoint of epoch %d of trial %s in %s\n", kept.Epoch, id, folder)
		if len(box.Recipients) > 0 && !vouched {
			fmt.Fprintln(out, "Who wrote it was not checked: that takes the identity of the study's first recipient.")
		}
		return nil
	})
	command.Flags().IntVar(&number, "trial", -1, "number of the trial (default: the recommended one)")
	command.Flags().StringVarP(&folder, "output", "o", "", "new folder for its files")
	command.Flags().StringVar(&identity, "identity", "", "file of a key that the study is encrypted to (docs/encryption.md)")
	return command
}

// lastCheckpoint is the last one of the trial with the number, or else of the winner.
func lastCheckpoint(ctx context.Context, client *rest.Client, study string, number int) (id trial.ID, kept *trial.Checkpoint, err error) {
	if number >= 0 {
		detail, err := client.Trial(ctx, study, number)
		if err != nil {
			return "", nil, err
		}
		id, kept = detail.Trial.ID, detail.Trial.Checkpoint
	} else {
		answer, err := client.Recommendation(ctx, study)
		if err != nil {
			return "", nil, err
		}
		if answer.Best != nil {
			id, kept = answer.Best.Trial, answer.Checkpoint
		}
	}
	if kept == nil {
		return "", nil, problem.New(problem.NotFound, "there is no checkpoint to download: the trial kept none")
	}
	return id, kept, nil
}
