package studycmd

import (
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"strconv"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/files"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/trial"
)

func artifactsCommand(flags *term.Flags) *cobra.Command {
	var folder string
	command := onTrial(flags, &cobra.Command{
		Use:   "artifacts STUDY NUMBER",
		Short: "List the files that a trial's script logged, or download them",
		Example: `  tandem study artifacts lenet-fashion-mnist 14
  tandem study artifacts lenet-fashion-mnist 14 --output plots`,
	}, func(ctx context.Context, client *rest.Client, name trialName, out io.Writer) error {
		detail, err := client.Trial(ctx, name.study, name.number)
		if err != nil {
			return err
		}
		logged := append([]trial.Artifact{}, detail.Trial.Logged...)
		if folder != "" {
			if err := os.Mkdir(folder, 0o700); err != nil {
				return fmt.Errorf("--output: name a new folder: %w", err)
			}
			for _, one := range logged {
				if err := download(ctx, client, name, one, filepath.Join(folder, one.Name)); err != nil {
					return err
				}
			}
		}
		return term.PrintAnswer(out, flags.JSON, logged, printArtifacts)
	})
	command.Flags().StringVarP(&folder, "output", "o", "", "new folder to download them into")
	return command
}

// download saves a file that the trial logged at the path.
func download(ctx context.Context, client *rest.Client, of trialName, one trial.Artifact, path string) error {
	if err := trial.CheckArtifact(one.Name, one.Bytes); err != nil { // a name leads nowhere else, also in a path
		return err
	}
	body, err := client.TrialArtifact(ctx, of.study, of.number, one.Name)
	if err != nil {
		return err
	}
	defer body.Close()
	return files.Write(path, body, 0o600)
}

func printArtifacts(out io.Writer, logged []trial.Artifact) error {
	return term.Rows(out, logged, "Its script logged no artifacts.", []string{"NAME", "KIND", "RUNG", "EPOCH", "SIZE"}, func(one trial.Artifact) []string {
		return []string{format.Plain(one.Name), one.Kind, strconv.Itoa(one.Rung), strconv.Itoa(one.Epoch), format.Size(one.Bytes)}
	})
}
