package truthcmd

import (
	"context"
	"fmt"
	"io"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/system"
)

// shownRuns is how many runs are printed.
const shownRuns = 20

// shownTruth is what is known of a type of machine, for scripts.
type shownTruth struct {
	Machine  string                       `json:"machine"`
	Clusters protocol.GroundTruthClusters `json:"clusters"`
	Runs     protocol.GroundTruthRuns     `json:"runs"`
}

func truthShowCommand(flags *truthFlags) *cobra.Command {
	var key string
	command := &cobra.Command{
		Use:   "show",
		Short: "Show the known workloads and the newest runs of a type of machine",
		Long: `Show the known workloads and the newest runs of a type of machine: which runs are
similar, and which system configuration was the fastest for most of them. An
epoch's seconds are over the whole data; of a run on a part of it, scaled up.`,
		Example: `  tandem ground-truth show
  tandem ground-truth show --machine "AMD EPYC 7763 64-Core Processor, 128 cores" --configuration cpu_threads=2`,
		Args: term.Arguments(0, "no arguments"),
		RunE: flags.Server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			known, err := showTruth(ctx, client, flags.machine, key)
			if err != nil {
				return err
			}
			return term.PrintAnswer(out, flags.JSON, known, printTruth)
		}),
	}
	flags.ofMachine(command, "the type of machine; not needed where only one is known")
	command.Flags().StringVar(&key, "configuration", "", "group the runs by their profiles under this configuration; by default that of most runs")
	flags.asJSON(command)
	return command
}

func showTruth(ctx context.Context, client *rest.Client, machine, key string) (shownTruth, error) {
	known := shownTruth{Machine: machine}
	machines, err := client.GroundTruthMachines(ctx)
	if err != nil {
		return known, err
	}
	var types []string
	for _, one := range machines {
		types = append(types, fmt.Sprintf("%q", format.Plain(one.Machine)))
		if machine == one.Machine || machine == "" {
			known.Machine = one.Machine
		}
	}
	switch {
	case len(machines) == 0:
		return known, fmt.Errorf("nothing is known yet: see 'tandem ground-truth list'")
	case machine == "" && len(machines) > 1:
		return known, term.Misuse("say which type of machine with --machine: %s", strings.Join(types, ", "))
	}
	if known.Clusters, err = client.GroundTruthClusters(ctx, known.Machine, key); err != nil {
		return known, err
	}
	if known.Runs, err = client.GroundTruthRuns(ctx, known.Machine, shownRuns, 0); err != nil {
		return known, err
	}
	if known.Runs.Total == 0 {
		return known, fmt.Errorf("nothing is known of a machine %q: there is %s", format.Plain(machine), strings.Join(types, ", "))
	}
	if key != "" && known.Clusters.Runs == 0 {
		var keys []string
		for _, one := range known.Clusters.Configurations {
			keys = append(keys, fmt.Sprintf("%q", one.Key))
		}
		return known, term.Misuse("no run was profiled under the configuration %q: there is %s", format.Plain(key), strings.Join(keys, ", "))
	}
	return known, nil
}

func printTruth(out io.Writer, known shownTruth) error {
	fmt.Fprintf(out, "%s\n\n", format.Plain(known.Machine))
	if err := printWorkloads(out, known.Clusters); err != nil {
		return err
	}
	var rows [][]string
	for _, run := range known.Runs.Runs {
		fastest, seconds, ratio := "-", "-", "-"
		if c := run.Comparison; c != nil {
			fastest, seconds = shownKnobs(c.Fastest), format.Seconds(c.Seconds)
			if c.Configurations > 1 {
				ratio = fmt.Sprintf("%.2fx as fast as the slowest of %d", c.SlowestSeconds/c.Seconds, c.Configurations)
			}
			if c.Neighbours > 0 {
				seconds += fmt.Sprintf(" beside %s", format.Count(c.Neighbours, "other trial"))
			}
		}
		rows = append(rows, []string{run.Updated.Local().Format("2006-01-02 15:04"), fmt.Sprint(run.Configurations), fmt.Sprint(run.Epochs), fastest, seconds, ratio})
	}
	fmt.Fprintf(out, "\nThe newest %d of %s:\n", len(rows), format.Count(known.Runs.Total, "run"))
	return term.Table(out, []string{"LAST REPORT", "CONFIGURATIONS", "EPOCHS", "FASTEST", "EPOCH", "SPEED"}, rows)
}

func printWorkloads(out io.Writer, known protocol.GroundTruthClusters) error {
	if len(known.Workloads) == 0 {
		_, err := fmt.Fprintln(out, "No workloads are known: no profiles that could be compared.")
		return err
	}
	var rows [][]string
	placed := 0
	for _, one := range known.Workloads {
		placed += one.Size
		fastest, in := "-", "-"
		if one.Compared > 0 {
			fastest, in = shownKnobs(one.Fastest), fmt.Sprintf("%d of %s that timed several", one.FastestIn, format.Count(one.Compared, "run"))
		}
		rows = append(rows, []string{one.Workload, fmt.Sprint(one.Size), fastest, in})
	}
	fmt.Fprintf(out, "Workloads known under %s:\n", shownKnobs(known.Configuration))
	err := term.Table(out, []string{"WORKLOAD", "RUNS", "FASTEST OF MOST", "IN"}, rows)
	if err == nil && known.Runs > placed {
		_, err = fmt.Fprintf(out, "%s like none of them so far.\n", format.Count(known.Runs-placed, "more run"))
	}
	return err
}

func shownKnobs(configuration system.Configuration) string {
	if len(configuration) == 0 {
		return "nothing set"
	}
	return format.Plain(configuration.Key())
}
