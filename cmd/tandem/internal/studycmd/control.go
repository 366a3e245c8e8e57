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

func extendCommand(flags *term.Flags) *cobra.Command {
	var more protocol.ExtendRequest
	command := extending(flags, &cobra.Command{
		Use:   "extend STUDY",
		Short: "Give a study more trials or time; one that is over goes on",
		Long: `Give a study more of what its stop section bounds. One that is over goes on where
it ended: its search knows what it has learned, and trials that the end cut off
wait for a promotion or a worker again.

The numbers say how much more: than the limits of a study that runs, and than
was used of one that is over.`,
		Example: `  tandem study extend lenet-fashion-mnist --trials 20
  tandem study extend lenet-fashion-mnist --trials 20 --seconds 3600`,
	}, &more, func() error {
		if more == (protocol.ExtendRequest{}) {
			return term.Misuse("say how much more the study gets, such as --trials 20")
		}
		return nil
	})
	set := command.Flags()
	set.IntVar(&more.Trials, "trials", 0, "how many more configurations may be tried")
	set.Float64Var(&more.Seconds, "seconds", 0, "how much longer it may run, in seconds")
	set.Float64Var(&more.DataPasses, "data-passes", 0, "how many more passes over the data its trials may make")
	set.Float64Var(&more.TrainingSeconds, "training-seconds", 0, "how much longer its trials may train together, in seconds")
	set.Float64Var(&more.Joules, "joules", 0, "how much more energy its trials may use, in joules")
	set.Float64Var(&more.Cost, "cost", 0, "how much more money its trials may cost, in the currency of the server's prices")
	set.Float64Var(&more.CO2, "co2-g", 0, "how many more grams of CO2 its trials may emit")
	return command
}

func retryCommand(flags *term.Flags) *cobra.Command {
	var more protocol.ExtendRequest
	command := extending(flags, &cobra.Command{
		Use:   "retry STUDY --failed",
		Short: "Try the failed trials of a study again; one that is over goes on",
		Long: `Try each trial again that failed or was lost, as a new trial with the same
parameters, before anything else. The study may create as many more trials for
that. A trial is tried again once; a retry that fails can be tried again too.`,
		Example: `  tandem study retry lenet-fashion-mnist --failed`,
	}, &more, func() error {
		if !more.RetryFailed {
			return term.Misuse("say what to try again: --failed")
		}
		return nil
	})
	command.Flags().BoolVar(&more.RetryFailed, "failed", false, "the trials that failed or were lost")
	command.Flags().Float64Var(&more.Seconds, "seconds", 0, "how much longer the study may run, in seconds")
	return command
}

func setCommand(flags *term.Flags) *cobra.Command {
	var priority, parallel int
	command := &cobra.Command{
		Use:   "set STUDY",
		Short: "Change a study's priority, or how many of its trials run at once",
		Long: `Change what a study gets of the pool, at once: the next trial starts by it. Trials
that run go on; with a smaller --parallel, none starts until fewer run.`,
		Example: `  tandem study set lenet-fashion-mnist --priority 5
  tandem study set lenet-fashion-mnist --parallel 4`,
	}
	onStudy(flags, command, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		var wanted protocol.SetRequest
		if command.Flags().Changed("priority") {
			wanted.Priority = &priority
		}
		if command.Flags().Changed("parallel") {
			wanted.Parallel = &parallel
		}
		if wanted == (protocol.SetRequest{}) {
			return term.Misuse("say what to change, such as --priority 5 or --parallel 4")
		}
		view, err := client.SetStudy(ctx, study, wanted)
		if err != nil {
			return err
		}
		return term.SayAnswer(out, flags.JSON, view, "Study %s has %s\n", format.Plain(view.Name), show.Place(view.Definition))
	})
	command.Flags().IntVar(&priority, "priority", 0, "a higher one is served first, from -1000 to 1000")
	command.Flags().IntVar(&parallel, "parallel", 0, "how many trials run at once at most; 0: as many as there is room for")
	return command
}

// extending is a command that extends a study, once the flags have passed the check.
func extending(flags *term.Flags, command *cobra.Command, more *protocol.ExtendRequest, check func() error) *cobra.Command {
	return onStudy(flags, command, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		if err := check(); err != nil {
			return err
		}
		view, err := client.ExtendStudy(ctx, study, *more)
		if err != nil {
			return err
		}
		trials := format.Count(view.Progress.Created, "trial")
		if most := view.Progress.MaxTrials; most > 0 {
			trials = fmt.Sprintf("%d of %s", view.Progress.Created, format.Count(most, "trial"))
		}
		return term.SayAnswer(out, flags.JSON, view, "Study %s is %s, with %s created\n", format.Plain(view.Name), view.Status, trials)
	})
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
		Use:     "delete STUDY",
		Short:   "Delete a study with its trials, logs and checkpoints",
		Example: `  tandem study delete lenet-fashion-mnist --yes`,
	}
	onStudy(flags, command, func(ctx context.Context, client *rest.Client, study string, out io.Writer) error {
		view, err := client.Study(ctx, study)
		if err == nil && !sure {
			err = term.Confirm(command, fmt.Sprintf("Delete study %s with its %s?", format.Plain(view.Name), format.Count(view.Progress.Created, "trial")))
		}
		if err == nil {
			err = client.DeleteStudy(ctx, view.ID)
		}
		if err != nil {
			return err
		}
		return term.SayAnswer(out, flags.JSON, map[string]string{"deleted": view.ID}, "Study %s was deleted\n", format.Plain(view.Name))
	})
	command.Flags().BoolVarP(&sure, "yes", "y", false, "do not ask")
	return command
}
