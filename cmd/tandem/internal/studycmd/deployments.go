package studycmd

import (
	"context"
	"fmt"
	"io"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func deploymentsCommand(flags *term.Flags) *cobra.Command {
	number := -1
	var saved savedDeployment
	command := onStudy(flags, &cobra.Command{
		Use:   "deployments STUDY",
		Short: "Say how to run a trial's model on the study's devices",
		Long: `Say with which batch, cores and clock the model of a trial runs best on each of
the study's devices, and what an inference then takes, with a band around every
estimate. Without --trial it is the trial that the study recommends.

With --output it makes a folder for the device: model.onnx, the trained model, if
the script logged it (trial.log_model); infer.py, a program that runs it so; and
README.md, which says what was measured.

The script has to save its model (trial.save_model), and the study file to have
an inference section; docs/edge.md says more.`,
		Example: `  tandem study deployments lenet-fashion-mnist
  tandem study deployments lenet-fashion-mnist --trial 7 --json
  tandem study deployments lenet-fashion-mnist --device raspberry-pi-4 --output deployment`,
	}, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		if number < 0 {
			answer, err := client.Recommendation(ctx, study)
			if err != nil {
				return err
			}
			if answer.Best == nil {
				return fmt.Errorf("study %s has no trial with a result yet: name one with --trial", answer.Study)
			}
			number = answer.Best.Number
		}
		answer, err := client.Deployments(ctx, study, number)
		if err != nil {
			return err
		}
		if saved.folder != "" {
			return saved.write(ctx, client, trialName{study, number}, answer, out)
		}
		return term.PrintAnswer(out, flags.JSON, answer, printDeployments)
	})
	command.Flags().IntVar(&number, "trial", -1, "number of the trial (default: the one that the study recommends)")
	command.Flags().StringVarP(&saved.folder, "output", "o", "", "new folder for the model, a program that runs it, and what was measured")
	command.Flags().StringVar(&saved.device, "device", "", "with --output: for which device (default: the first on which the model runs)")
	return command
}

func printDeployments(out io.Writer, answer protocol.Deployments) error {
	fmt.Fprintf(out, "Trial %d, architecture %s\n", answer.Trial, format.Plain(answer.Architecture))
	return show.PrintDeployments(out, answer.Devices)
}
