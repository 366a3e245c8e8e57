package studycmd

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/url"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
)

// createFlags are the flags of "tandem study create".
type createFlags struct {
	*term.Flags
	name      string
	directory string
	watch     bool
	groups    []string
	warm      warmFlags
}

func createCommand(shared *term.Flags) *cobra.Command {
	flags := createFlags{Flags: shared}
	command := &cobra.Command{
		Use:   "create FILE",
		Short: "Create a study from a study file",
		Long: `Create a study from a study file (YAML or JSON; "-" reads standard input).

Every fault of the file is reported at once, with its line. The command of the
study starts in the folder of the file when the server is on this machine, and
otherwise in the folder the workers were started in; --directory says another.

A study may begin with results that were measured elsewhere: in an earlier study
of the server, or in a CSV file with a column for each parameter and for the
objective. They are tried against this study's own results before they are
trusted.`,
		Example: `  tandem study create study.yaml --watch
  tandem study create study.yaml --warm-start sweep.csv
  tandem study create study.yaml --warm-start-from lenet-fashion-mnist
  tandem study create study.yaml --name second-try`,
		Args: term.Arguments(1, "the path of a study file"),
		RunE: func(command *cobra.Command, args []string) error {
			return flags.run(command, args[0])
		},
	}
	command.Flags().StringVar(&flags.name, "name", "", "name the study so, instead of as the file says")
	command.Flags().StringSliceVar(&flags.groups, "group", nil, "share it with this group of yours (repeatable)")
	command.Flags().StringVar(&flags.directory, "directory", "", "where the command starts, on the workers")
	flags.warm.register(command)
	command.Flags().BoolVar(&flags.watch, "watch", false, "follow the study until it ends")
	return command
}

func (f *createFlags) run(command *cobra.Command, path string) error {
	ctx, out := command.Context(), command.OutOrStdout()
	def, err := f.definition(ctx, path, command.InOrStdin())
	if err != nil {
		return err
	}
	prior, err := f.warm.apply(&def, command.ErrOrStderr())
	if err != nil {
		return err
	}
	client, err := f.Server.Open()
	if err != nil {
		return err
	}
	view, err := createWarm(ctx, client, def, prior)
	if err != nil {
		return err
	}
	if len(f.groups) > 0 {
		shared, err := client.ShareStudy(ctx, view.ID, f.groups...)
		if err != nil {
			return fmt.Errorf("study %s (%s) was created, and is not shared ('tandem study share' shares it): %w", format.Plain(view.Name), view.ID, err)
		}
		view.Groups = shared.Groups
	}
	if !f.JSON {
		printWarm(out, view)
		show.PrintUseless(out, view)
	}
	if f.watch {
		return f.follow(ctx, client, view, out)
	}
	return term.SayAnswer(out, f.JSON, view, "Created study %s (%s): %s/studies/%s\n", format.Plain(view.Name), view.ID, client.URL(), view.ID)
}

func (f *createFlags) follow(ctx context.Context, client *rest.Client, view protocol.StudyView, out io.Writer) error {
	if !f.JSON {
		fmt.Fprintf(out, "Created study %s (%s): %s/studies/%s\n", format.Plain(view.Name), view.ID, client.URL(), view.ID)
	}
	return show.Follow(ctx, client, view.ID, f.JSON, out)
}

// definition reads the file and puts the flags on top.
func (f *createFlags) definition(ctx context.Context, path string, stdin io.Reader) (definition.Definition, error) {
	def, err := ReadFile(ctx, path, stdin)
	if err != nil {
		return def, err
	}
	if f.name != "" {
		def.Name = f.name
	}
	switch {
	case f.directory != "":
		def.Directory = f.directory
		return def, nil
	case onThisMachine(f.Server.URL):
		return InFolderOf(path, def)
	}
	return def, nil
}

// Create sends a definition to the server.
func Create(ctx context.Context, client *rest.Client, def definition.Definition) (protocol.StudyView, error) {
	file, contentType, err := document(def)
	if err != nil {
		return protocol.StudyView{}, err
	}
	return client.CreateStudy(ctx, file, contentType)
}

// onThisMachine says whether the server's workers may have this machine's folders. Those
// that a client of another system reaches at localhost are behind a tunnel.
func onThisMachine(server string) bool {
	address, err := url.Parse(server)
	if err != nil || term.Client {
		return false
	}
	ip := net.ParseIP(address.Hostname())
	return address.Hostname() == "localhost" || ip != nil && ip.IsLoopback()
}
