package poolcmd

import (
	"context"
	"fmt"
	"io"
	"maps"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/build"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol/crew"
)

func launchesCommand(server *term.Connection) *cobra.Command {
	var asJSON bool
	command := &cobra.Command{
		Use:   "launches",
		Short: "Show the workers that launchers start: why they wait, and how they ended",
		Long: `Show what each tandem launch has asked its engine for: how many workers are wanted,
wait, start and run, why they wait, and for how long others waited before. A shape
is on hold when its last workers brought no trial: 'tandem pool try-again SHAPE'
starts one at once.`,
		Example: `  tandem pool launches
  tandem pool launches --json | jq '.launchers[].shapes[] | select(.hold)'`,
		Args: term.Arguments(0, "no arguments"),
		RunE: server.Run(func(ctx context.Context, client *rest.Client, _ []string, out io.Writer) error {
			list, err := client.Launches(ctx)
			if err != nil {
				return err
			}
			if asJSON {
				return term.WriteJSON(out, crew.Launches{Launchers: list})
			}
			return printLaunches(out, list)
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}

func printLaunches(out io.Writer, launchers []crew.Launcher) error {
	if len(launchers) == 0 {
		_, err := fmt.Fprintln(out, "No launcher starts workers. Start one where the engine is: tandem launch slurm, kubernetes or command")
		return err
	}
	for i, one := range launchers {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprintf(out, "%s starts workers of %s for %s\n", format.Plain(one.Name), format.Plain(one.Engine), whose(one))
		switch {
		case one.Silent:
			fmt.Fprintf(out, "It has not been heard of since %s: does it still run?\n", term.FormatTime(&one.Heard, ""))
		case one.Trouble != "":
			fmt.Fprintf(out, "It does not see its engine: %s\n", format.Plain(one.Trouble))
		}
		for _, line := range build.Unlike(maps.All(map[string]build.Build{one.Name: one.Build})) {
			fmt.Fprintln(out, format.Plain(line))
		}
		if err := printShapes(out, one.Shapes); err != nil {
			return err
		}
		for _, note := range one.Notes {
			fmt.Fprintf(out, "  %s\n", format.Plain(note.Says))
		}
		if err := printEnds(out, one.Ends); err != nil {
			return err
		}
	}
	return nil
}

func whose(one crew.Launcher) string {
	if one.User == "" {
		return "all users"
	}
	return "user " + format.Plain(one.User)
}

func printShapes(out io.Writer, shapes []crew.LaunchShape) error {
	rows := make([][]string, 0, len(shapes))
	for _, one := range shapes {
		waited := "not known yet"
		if one.Learned != nil {
			waited = fmt.Sprintf("%s, 9 of 10 at most %s", format.Seconds(one.Learned.MedianSeconds), format.Seconds(one.Learned.MostSeconds))
		}
		rows = append(rows, []string{format.Plain(one.Name), fmt.Sprint(one.Wanted), fmt.Sprint(one.Pending), fmt.Sprint(one.Starting), fmt.Sprint(one.Running), fmt.Sprint(one.Most), waited})
	}
	if err := term.Table(out, []string{"SHAPE", "WANTED", "PENDING", "STARTING", "RUNNING", "MOST", "WAIT SO FAR (MEDIAN)"}, rows); err != nil {
		return err
	}
	for _, one := range shapes {
		for _, wait := range one.Waits {
			fmt.Fprintf(out, "  %s of the shape %s, since %s: %s\n", format.Count(wait.Workers, "worker"), format.Plain(one.Name), term.FormatTime(&wait.Since, ""), format.Plain(wait.Why))
		}
		if one.Hold != nil {
			fmt.Fprintf(out, "  %s\n", shownHold(one))
		}
	}
	return nil
}

// shownHold says why no more workers of a shape are started.
func shownHold(shape crew.LaunchShape) string {
	text := fmt.Sprintf("The shape %s is on hold until %s, as its last workers brought no trial: %s", format.Plain(shape.Name), shape.Hold.Until.Local().Format(time.TimeOnly), format.Plain(shape.Hold.Why))
	if shape.Hold.TryAgain {
		return text + "; the launcher is asked to try again"
	}
	return text
}

// mostPrinted is how many workers that ended are printed.
const mostPrinted = 10

func printEnds(out io.Writer, ends []crew.LaunchEnd) error {
	for i, one := range ends {
		if i == mostPrinted {
			_, err := fmt.Fprintf(out, "  and %d before; --json has them\n", len(ends)-mostPrinted)
			return err
		}
		if _, err := fmt.Fprintf(out, "  %s\n", shownEnd(one)); err != nil {
			return err
		}
	}
	return nil
}

// shownEnd says how a worker ended, in a line.
func shownEnd(one crew.LaunchEnd) string {
	text := one.At.Local().Format("2006-01-02 15:04") + "  " + format.Plain(one.Shape)
	if one.Job != "" {
		text += " " + format.Plain(one.Job)
	}
	if one.Node != "" {
		text += " on " + format.Plain(one.Node)
	}
	if one.Seconds > 0 {
		text += " after " + format.Seconds(one.Seconds)
	}
	return text + ": " + format.Plain(one.Why)
}

func tryAgainCommand(server *term.Connection) *cobra.Command {
	var asJSON bool
	var name string
	command := &cobra.Command{
		Use:   "try-again SHAPE",
		Short: "Have a launcher start a worker of a shape that is on hold",
		Long: `Have a launcher start one worker of a shape that is on hold, to see whether what was
wrong is repaired. The launcher hears it at its next look. If the worker brings no
trial either, the shape is on hold again, for twice as long.`,
		Example: `  tandem pool try-again gpu1`,
		Args:    term.Arguments(1, "the name of a shape, as in tandem pool launches"),
		RunE: server.Run(func(ctx context.Context, client *rest.Client, args []string, out io.Writer) error {
			all, err := client.Launches(ctx)
			if err != nil {
				return err
			}
			found, err := heldBy(all, args[0], name)
			if err != nil {
				return err
			}
			made, err := client.TryAgain(ctx, found.ID, args[0])
			if err != nil {
				return err
			}
			return term.SayAnswer(out, asJSON, made, "The launcher %s tries the shape %s again at its next look\n", format.Plain(found.Name), format.Plain(args[0]))
		}),
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	command.Flags().StringVar(&name, "launcher", "", "name or id of the launcher, where several have such a shape on hold")
	return command
}

// heldBy is the launcher that has the shape on hold, of that name if there is one.
func heldBy(all []crew.Launcher, shape, name string) (found crew.Launcher, err error) {
	var names []string
	for _, one := range all {
		for _, known := range one.Shapes {
			if known.Name == shape && known.Hold != nil && (name == "" || name == one.Name || name == one.ID) {
				found = one
				names = append(names, one.Name+" ("+one.ID+")")
			}
		}
	}
	switch len(names) {
	case 0:
		return found, fmt.Errorf("no launcher has a shape %q on hold: tandem pool launches shows them", shape)
	case 1:
		return found, nil
	}
	return found, term.Misuse("several launchers have the shape %q on hold: name one by --launcher: %s", shape, strings.Join(names, ", "))
}
