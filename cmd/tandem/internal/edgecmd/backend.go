package edgecmd

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/backend"
	"github.com/tandem-tune/tandem/internal/format"
)

// BackendCommand is "tandem backend".
func BackendCommand() *cobra.Command {
	var flags term.Flags
	return flags.Group(&cobra.Command{
		Use:   "backend",
		Short: "Places to deploy at a price, and which is best for a model",
		Long: `Places to deploy at a price: some cores and memory of a device. Which is best for the
model of a study is chosen by what was measured there; boards are asked to measure
what could be better.`,
	}, backendAddCommand(&flags), backendListCommand(&flags), backendRemoveCommand(&flags), backendChooseCommand(&flags))
}

func backendAddCommand(flags *term.Flags) *cobra.Command {
	var offer backend.BackendOffer
	command := &cobra.Command{
		Use:   "add NAME --device DEVICE",
		Short: "Add a backend, or replace the one of the name",
		Example: `  tandem backend add kitchen --device raspberry-pi-4 --cores 2
  tandem backend add rack --device board/rack --cores 8 --memory-mib 4096 --price 0.20 --max-rate 500`,
		Args: term.Arguments(1, "the backend's name"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			if offer.Device == "" {
				return term.Misuse("--device must name a device of the catalogue (tandem edge devices), or board/ and the name that an agent was given")
			}
			made, err := client.SetBackend(ctx, args[0], offer)
			if err != nil {
				return err
			}
			return term.SayAnswer(out, flags.JSON, made, "Backend %s: %s of %s, %s an hour, %s\n", format.Plain(made.Name), resources(made), format.Plain(made.Device), price(made.PricePerHour), seenText(made))
		}),
	}
	command.Flags().StringVar(&offer.Device, "device", "", "a name of the catalogue, or board/ and the name that an edge agent was given (required)")
	command.Flags().IntVar(&offer.Cores, "cores", 0, "cores that a deployment gets (default all of the device)")
	command.Flags().IntVar(&offer.MemoryMiB, "memory-mib", 0, "memory that weights and activations may take, in MiB (default that of the device)")
	command.Flags().Float64Var(&offer.PricePerHour, "price", 0, "price of an hour, in any one currency")
	command.Flags().Float64Var(&offer.MaxRate, "max-rate", 0, "requests a second that it takes at most (default what it is able to)")
	return command
}

// resources are what a deployment gets.
func resources(one backend.Backend) string {
	text := "all cores"
	if one.Cores > 0 {
		text = format.Count(one.Cores, "core")
	}
	if one.MemoryMiB > 0 {
		text += fmt.Sprintf(", %d MiB", one.MemoryMiB)
	}
	return text
}

func price(amount float64) string { return fmt.Sprintf("%.3g", amount) }

// seenText says whether anything is measured there.
func seenText(one backend.Backend) string {
	if one.Seen == nil {
		return "no board asked in the last day"
	}
	return "a board asked " + show.Span(time.Since(*one.Seen).Seconds()) + " ago"
}

func backendListCommand(flags *term.Flags) *cobra.Command {
	return term.List[backend.Backend]{
		Short: "List the backends", Example: `  tandem backend list`, Key: "backends",
		Get: (*rest.Client).Backends, Print: printBackends,
	}.Command(flags)
}

func printBackends(out io.Writer, list []backend.Backend) error {
	return term.Rows(out, list, "There are no backends: add one with \"tandem backend add\"", []string{"BACKEND", "DEVICE", "A DEPLOYMENT GETS", "PRICE/H", "REQUESTS/S", "MEASURING"}, func(one backend.Backend) []string {
		rate := "as it is able to"
		if one.MaxRate > 0 {
			rate = fmt.Sprintf("at most %g", one.MaxRate)
		}
		return []string{format.Plain(one.Name), format.Plain(one.Device), resources(one), price(one.PricePerHour), rate, seenText(one)}
	})
}

func backendRemoveCommand(flags *term.Flags) *cobra.Command {
	return term.Removal{
		Use: "remove NAME", Short: "Remove a backend; what was measured there stays", Example: `  tandem backend remove kitchen`,
		What: "the name of a backend, as 'tandem backend list' shows it",
		Do:   (*rest.Client).RemoveBackend, Done: "removed", Said: "Backend %s is removed",
	}.Command(flags)
}

func backendChooseCommand(flags *term.Flags) *cobra.Command {
	number, priority := -1, ""
	command := &cobra.Command{
		Use:   "choose STUDY",
		Short: "Say on which backend a model is served best",
		Long: `Say on which backend the model of a study is served best within the bounds of the
study file: inference.objective.constraint, and the rate and 99th percentile of
inference.scenario.

Only a backend where the model was measured to keep them is chosen; estimates are
shown with their bands, and promise nothing. Boards are asked to measure the
recommended model where it could be better. The exit code is 1 if none is chosen.`,
		Example: `  tandem backend choose lenet-fashion-mnist
  tandem backend choose lenet-fashion-mnist --trial 7 --priority latency=2,energy=1 --json`,
		Args: term.Arguments(1, "the study"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			answer, err := client.ChooseBackend(ctx, args[0], number, priority)
			if err != nil {
				return err
			}
			if err := term.PrintAnswer(out, flags.JSON, answer, printChoice); err != nil || answer.Chosen != "" {
				return err
			}
			return errors.New("no backend was chosen")
		}),
	}
	command.Flags().IntVar(&number, "trial", -1, "number of the trial (default: the one that the study recommends)")
	command.Flags().StringVar(&priority, "priority", "", "weights of cost, latency and energy, such as latency=2,energy=1 (default cost; energy where that is the objective of inference)")
	return command
}

func printChoice(out io.Writer, answer backend.BackendChoice) error {
	var rows [][]string
	for _, o := range answer.Options {
		row := []string{format.Plain(o.Backend.Name), verdict(answer, o)}
		if d := o.Deployment; d == nil || !d.Runs() {
			row = append(row, "-", "-", "-", "-", "-", "-")
		} else {
			p99 := "-"
			if d.Batching != nil && !d.Batching.Overloaded {
				p99 = show.Span(d.Batching.P99Seconds)
			}
			row = append(row, show.RunWith(d.Configuration), show.Band(d.LatencySeconds, show.Span), p99, show.SampleJoules(*d), price(1e6*o.Cost), format.Plain(d.Method))
		}
		rows = append(rows, row)
	}
	if err := term.Table(out, []string{"BACKEND", "", "RUN WITH", "LATENCY OF A BATCH", "P99", "J/SAMPLE", "PRICE/MILLION", "THE NUMBERS ARE"}, rows); err != nil {
		return err
	}
	for _, o := range answer.Options {
		if len(o.Reasons) > 0 {
			fmt.Fprintf(out, "  %s: %s\n", format.Plain(o.Backend.Name), format.Plain(strings.Join(o.Reasons, "; ")))
		}
		if o.Deployment != nil && o.Deployment.MeasuredAt != nil {
			fmt.Fprintf(out, "  %s: %s\n", format.Plain(o.Backend.Name), show.Measured(*o.Deployment, time.Now()))
		}
	}
	_, err := fmt.Fprintf(out, "Trial %s: %s\n", strconv.Itoa(answer.Trial), format.Plain(answer.Why))
	return err
}

// verdict is what a backend is, in a word or two.
func verdict(answer backend.BackendChoice, o backend.BackendOption) string {
	switch {
	case o.Backend.Name == answer.Chosen:
		return "chosen"
	case o.Backend.Name == answer.Likely && answer.Chosen != "":
		return "likely better"
	case o.Backend.Name == answer.Likely && o.State == backend.Keeps:
		return "likely"
	}
	text := string(o.State) + map[backend.State]string{backend.Keeps: " the bounds", backend.Misses: " the bounds"}[o.State]
	if o.Worse != nil {
		text += fmt.Sprintf(", %+.0f%%", 100**o.Worse)
	}
	return text
}
