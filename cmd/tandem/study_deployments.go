package main

import (
	"context"
	"fmt"
	"io"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/deployment"
	"github.com/tandem-tune/tandem/inference_emu/estimate"
	"github.com/tandem-tune/tandem/inference_emu/tuning"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
)

func deploymentsCommand(flags *term.Flags) *cobra.Command {
	number := -1
	command := onStudy(flags, &cobra.Command{
		Use:   "deployments STUDY",
		Short: "Say how to run a trial's model on the study's devices",
		Long: `Say with which batch, cores and clock the model of a trial runs best on each of
the study's devices, and what an inference then takes, with a band around every
estimate. Without --trial it is the trial that the study recommends.

The script has to save its model (trial.save_model), and the study file to have
an inference section; docs/edge.md says more.`,
		Example: `  tandem study deployments lenet-fashion-mnist
  tandem study deployments lenet-fashion-mnist --trial 7 --json`,
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
		return term.PrintAnswer(out, flags.JSON, answer, printDeployments)
	})
	command.Flags().IntVar(&number, "trial", -1, "number of the trial (default: the one that the study recommends)")
	return command
}

func printDeployments(out io.Writer, answer protocol.Deployments) error {
	fmt.Fprintf(out, "Trial %d, architecture %s\n", answer.Trial, format.Plain(answer.Architecture))
	return deploymentTable(out, answer.Devices)
}

// deploymentTable is a line for each device, and what its numbers stand on.
func deploymentTable(out io.Writer, devices []deployment.Deployment) error {
	var rows [][]string
	for _, one := range devices {
		if !one.Runs() {
			rows = append(rows, []string{format.Plain(one.Device), "-", "-", "-", "-", "-", "it does not run there"})
			continue
		}
		rows = append(rows, []string{format.Plain(one.Device), shownDeployment(one.Configuration), shownBand(one.LatencySeconds, shownSpan),
			fmt.Sprintf("%.4g", one.SamplesPerSecond), shownSampleJoules(one), format.Size(one.MemoryBytes), format.Plain(one.Method)})
	}
	if err := term.Table(out, []string{"DEVICE", "RUN WITH", "LATENCY OF A BATCH", "SAMPLES/S", "J/SAMPLE", "MEMORY", "THE NUMBERS ARE"}, rows); err != nil {
		return err
	}
	for _, one := range devices {
		for _, unmet := range one.Unmet {
			if one.Runs() {
				unmet = "nothing keeps to the constraints: " + unmet
			}
			fmt.Fprintf(out, "  %s: %s\n", format.Plain(one.Device), format.Plain(unmet))
		}
		if !one.Estimated() && one.EnergyEstimated() {
			fmt.Fprintf(out, "  %s: the joules are not measured: %s\n", format.Plain(one.Device), format.Plain(one.EnergyMethod))
		}
		for _, doubtful := range one.Doubtful {
			fmt.Fprintf(out, "  %s: %s holds for the estimate, but not at the bad end of its band\n", format.Plain(one.Device), format.Plain(doubtful))
		}
	}
	fmt.Fprintf(out, "Bands of estimates hold with a probability of %.0f%%, those of what was measured are the 95%% interval of the median.\n", 100*estimate.Within)
	return nil
}

// shownBand is a quantity with its band, if it has one.
func shownBand(band deployment.Band, shown func(float64) string) string {
	if band.Low == band.High {
		return shown(band.Value)
	}
	return shown(band.Value) + " (" + shown(band.Low) + " to " + shown(band.High) + ")"
}

// shownSampleJoules are joules with their band; that they are an estimate is said
// where the column of the numbers says that the latency was measured.
func shownSampleJoules(one deployment.Deployment) string {
	if one.JoulesPerSample.Value <= 0 {
		return "?"
	}
	text := shownBand(one.JoulesPerSample, func(joules float64) string { return fmt.Sprintf("%.3g", joules) })
	if !one.Estimated() && one.EnergyEstimated() {
		text += ", estimate"
	}
	return text
}

func shownDeployment(c tuning.Configuration) string {
	parts := []string{"batch " + strconv.Itoa(c.BatchSize)}
	if c.Cores > 0 {
		parts = append(parts, format.Count(c.Cores, "core"))
	}
	if c.CPUHertz > 0 {
		parts = append(parts, fmt.Sprintf("%.4g GHz", c.CPUHertz/1e9))
	}
	return strings.Join(parts, ", ")
}
