package studycmd

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/store/importer"
	"github.com/tandem-tune/tandem/study/space"
)

// enqueueFlags are the flags of "tandem study enqueue".
type enqueueFlags struct {
	*term.Flags
	values []string
	file   string
}

func enqueueCommand(shared *term.Flags) *cobra.Command {
	flags := enqueueFlags{Flags: shared}
	command := &cobra.Command{
		Use:   "enqueue STUDY",
		Short: "Try configurations before anything the search proposes",
		Long: `Try configurations before anything the search proposes. Parameters that are not
given are drawn at random; those that do not exist in the configuration are left
out. Enqueued configurations count toward stop.trials like any others, and start
on the rung the next trial starts on.

A file is JSON, a list of objects, if its name ends in .json, and else CSV with
a header of parameter names, in which an empty cell is a parameter not given.`,
		Example: `  tandem study enqueue lenet-fashion-mnist -p learning_rate=0.01 -p batch_size=32
  tandem study enqueue lenet-fashion-mnist --file configurations.csv`,
		Args: term.Arguments(1, "the name or the id of a study, and parameters as -p name=value"),
		RunE: func(command *cobra.Command, args []string) error {
			return flags.run(command, args[0])
		},
	}
	command.Flags().StringArrayVarP(&flags.values, "param", "p", nil, "a parameter's value, as name=value; once for each parameter")
	command.Flags().StringVar(&flags.file, "file", "", "a JSON or CSV file of configurations")
	return command
}

func (f *enqueueFlags) run(command *cobra.Command, study string) error {
	if (len(f.values) > 0) == (f.file != "") {
		return term.Misuse("say what to enqueue: either -p name=value, once for each parameter, or --file")
	}
	client, err := f.Server.Open()
	if err != nil {
		return err
	}
	view, err := client.Study(command.Context(), study)
	if err != nil {
		return err
	}
	configurations, err := f.configurations(command, view.Definition.Space)
	if err != nil {
		return term.Misuse("%w", err)
	}
	reply, err := client.Enqueue(command.Context(), view.ID, protocol.EnqueueRequest{Configurations: configurations})
	if err != nil {
		return err
	}
	return term.SayAnswer(command.OutOrStdout(), f.JSON, reply, "Study %s: %s enqueued, %d waiting in all\n",
		format.Plain(reply.Study), format.Count(reply.Enqueued, "configuration"), reply.Waiting)
}

// configurations are those of the file, or the one of the flags.
func (f *enqueueFlags) configurations(command *cobra.Command, in space.Space) ([]space.Configuration, error) {
	if f.file != "" {
		configurations, notes, err := importer.ReadConfigurations(f.file, in)
		for _, note := range notes {
			fmt.Fprintln(command.ErrOrStderr(), format.Plain(note))
		}
		return configurations, err
	}
	configuration := make(space.Configuration, len(f.values))
	for _, given := range f.values {
		name, text, ok := strings.Cut(given, "=")
		if !ok {
			return nil, fmt.Errorf("-p takes name=value, not %q", given)
		}
		if _, twice := configuration[name]; twice {
			return nil, fmt.Errorf("-p gives %s twice", name)
		}
		// Of a name that the space does not have, the server says so.
		parameter, _ := in.Parameter(name)
		configuration[name] = parameter.Written(text)
	}
	return []space.Configuration{configuration}, nil
}
