package profilecmd

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"os"
	"strconv"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/perf"
	"github.com/tandem-tune/tandem/trial"
)

// EventList is the flag --events.
type EventList []perf.Event

// AddEventsFlag adds the flag to a command.
func AddEventsFlag(command *cobra.Command, events *EventList) {
	command.Flags().Var(events, "events", "events to count: names, kinds (hardware, cache, software, pmu), beginnings with *, or @FILE with one on each line (default: all)")
}

// chosen is what to count: all events without the flag.
func (l EventList) chosen() []perf.Event {
	if l == nil {
		return perf.Events()
	}
	return l
}

// Type is what the help calls it.
func (l *EventList) Type() string { return "names" }

// String is the flag's value before it is set.
func (l *EventList) String() string { return "" }

// Set adds events. A name that this machine does not know is a mistake; in a
// file, which may come from another machine, it is passed over.
func (l *EventList) Set(text string) error {
	names, path := []string{}, ""
	for _, event := range *l {
		names = append(names, event.Name)
	}
	for name := range strings.SplitSeq(text, ",") {
		if file, is := strings.CutPrefix(name, "@"); is {
			listed, err := readEventNames(file)
			if err != nil {
				return err
			}
			names, path = append(names, listed...), file
		} else if _, unknown := perf.SelectEvents([]string{name}); len(unknown) > 0 {
			return fmt.Errorf("no event is called %s; 'tandem profile --json -- true' lists all of this machine", name)
		} else {
			names = append(names, name)
		}
	}
	selected, _ := perf.SelectEvents(names)
	if len(selected) == 0 {
		return fmt.Errorf("%s names no event of this machine", path)
	}
	*l = selected
	return nil
}

// readEventNames reads a list of events; a # begins a remark.
func readEventNames(path string) ([]string, error) {
	content, err := os.ReadFile(path)
	if err != nil {
		return nil, fmt.Errorf("read the list of events: %w", err)
	}
	var names []string
	for line := range strings.Lines(string(content)) {
		line, _, _ = strings.Cut(line, "#")
		if line = strings.TrimSpace(line); line != "" {
			names = append(names, line)
		}
	}
	return names, nil
}

// EventsCommand is "tandem events".
func EventsCommand() *cobra.Command {
	var write string
	var threshold float64
	var asJSON bool
	command := &cobra.Command{
		Use:   "events FILE...",
		Short: "Find the events that are worth a counter, from recorded epochs",
		Long: `Find the events of the processor that others stand for, from epochs that were
recorded, and write a list of the rest. A processor has few counters: with fewer
events each has one for more of the time.

The files are what "tandem profile --json" and "tandem study trial --json" print;
"-" is standard input. Take several trainings of the kinds that you run, on the
machine that you run them on.`,
		Example: `  tandem profile --json -- python3 train.py > a.json
  tandem study trial lenet-fashion-mnist 14 --json > b.json
  tandem events a.json b.json --write events.txt
  tandem worker --events @events.txt`,
		Args: func(_ *cobra.Command, args []string) error {
			if len(args) == 0 {
				return term.Misuse("give files with recorded epochs")
			}
			return nil
		},
		RunE: func(command *cobra.Command, args []string) error {
			epochs, err := readEpochs(command.Context(), args, command.InOrStdin())
			if err != nil {
				return err
			}
			choice, err := perf.Choose(epochs, threshold)
			if err != nil {
				return term.Misuse("%w", err)
			}
			if write != "" {
				if err := os.WriteFile(write, []byte(eventFile(choice)), 0o666); err != nil {
					return fmt.Errorf("write the list of events: %w", err)
				}
			}
			return term.PrintAnswer(command.OutOrStdout(), asJSON, choice, printChoice)
		},
	}
	command.Flags().StringVar(&write, "write", "", "file for the list of events, for --events @FILE of 'tandem worker', 'tandem run' and 'tandem profile'")
	command.Flags().Float64Var(&threshold, "threshold", perf.DefaultCorrelation, "correlation, of either sign, from which one event stands for another")
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}

// recordedEpochs is what the files may hold: a command's profile, or a trial.
type recordedEpochs struct {
	Profile *profiler.Profile `json:"profile"`
	Epochs  []profiledEpoch   `json:"epochs"`
	Reports []struct {
		Profile *trial.Profile `json:"profile"`
	} `json:"reports"`
}

// rates are the events of each epoch, per second. A command without epochs is
// one.
func (r recordedEpochs) rates() []map[string]float64 {
	var list []map[string]float64
	add := func(p profiler.Profile) {
		epoch := map[string]float64{}
		for _, event := range p.Events {
			epoch[event.Name] = event.PerSecond
		}
		list = append(list, epoch)
	}
	for _, epoch := range r.Epochs {
		add(epoch.Profile)
	}
	if r.Profile != nil && len(r.Epochs) == 0 {
		add(*r.Profile)
	}
	for _, report := range r.Reports {
		if report.Profile == nil {
			continue
		}
		epoch := map[string]float64{}
		for name, rate := range report.Profile.Events {
			epoch[name] = float64(rate)
		}
		list = append(list, epoch)
	}
	return list
}

// readEpochs returns the epochs of all files in which events were counted.
func readEpochs(ctx context.Context, paths []string, stdin io.Reader) ([]map[string]float64, error) {
	var epochs []map[string]float64
	for _, path := range paths {
		data, err := term.ReadInput(ctx, func() ([]byte, error) {
			if path == "-" {
				return io.ReadAll(stdin)
			}
			return os.ReadFile(path)
		})
		if err != nil {
			return nil, err
		}
		var file recordedEpochs
		if err := json.Unmarshal(data, &file); err != nil {
			return nil, term.Misuse("%s is not what 'tandem profile --json' or 'tandem study trial --json' prints: %w", path, err)
		}
		for _, epoch := range file.rates() {
			if len(epoch) > 0 {
				epochs = append(epochs, epoch)
			}
		}
	}
	return epochs, nil
}

// eventFile is the list for --events.
func eventFile(choice perf.Choice) string {
	var text strings.Builder
	fmt.Fprintf(&text, "# Events worth a counter, by 'tandem events' from %s; those that correlate by at least %g are left out.\n", format.Count(choice.Epochs, "epoch"), choice.Threshold)
	for _, name := range choice.Events() {
		fmt.Fprintln(&text, name)
	}
	return text.String()
}

func printChoice(out io.Writer, choice perf.Choice) error {
	per := "per second of CPU time"
	if !choice.PerCPUSecond {
		per = "per second"
	}
	kept, left := choice.Events(), 0
	var rows [][]string
	for _, group := range choice.Groups {
		for i, other := range group.Others {
			first := ""
			if i == 0 {
				first = format.Plain(group.Representative)
			}
			rows = append(rows, []string{first, format.Plain(other.Name), strconv.FormatFloat(other.R, 'f', 4, 64)})
			left++
		}
	}
	fmt.Fprintf(out, "%s, rates %s. Of %s, %d are worth a counter.\n\n", format.Count(choice.Epochs, "epoch"), per,
		format.Count(len(kept)+left+len(choice.Constant), "event"), len(kept))
	if len(rows) > 0 {
		if err := term.Table(out, []string{"COUNT", "IT STANDS FOR", "R"}, rows); err != nil {
			return err
		}
		fmt.Fprintln(out)
	}
	if len(choice.Constant) > 0 {
		fmt.Fprintf(out, "Left out, as they hardly changed: %s\n", format.Plain(strings.Join(choice.Constant, ", ")))
	}
	if len(choice.Rare) > 0 {
		fmt.Fprintf(out, "Kept, as too few epochs have them: %s\n", format.Plain(strings.Join(choice.Rare, ", ")))
	}
	_, err := fmt.Fprintf(out, "Worth a counter: %s\n", format.Plain(strings.Join(kept, ", ")))
	return err
}
