// Package runcmd is "tandem run": a server and a worker in one process, for one study.
package runcmd

import (
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"maps"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/servecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/show"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/studycmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/workercmd"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/protocol"
	"github.com/tandem-tune/tandem/study/definition"
	"github.com/tandem-tune/tandem/web/auth"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

// runFlags are the flags of "tandem run".
type runFlags struct {
	server      servecmd.Options
	worker      workercmd.Options
	keepServing bool
	json        bool
	verbose     bool
}

// Command is "tandem run".
func Command() *cobra.Command {
	var flags runFlags
	command := &cobra.Command{
		Use:   "run FILE",
		Short: "Run a study on this machine, with a server and a worker in one process",
		Long: `Run a study on this machine: a server and a worker in one process, progress,
the leaderboard and the recommendation. The command starts in the study file's
folder. On a terminal the web page stays open until Ctrl-C.

A run that was interrupted goes on where it was when it is started again. A
study of the same name that is over, or differs, is kept: the new one gets a
number behind its name.`,
		Example: `  tandem run study.yaml
  tandem run study.yaml --slots 4 --path .venv/bin
  tandem run study.yaml --json > result.json`,
		Args: term.Arguments(1, "the path of a study file"),
		RunE: func(command *cobra.Command, args []string) error {
			if !command.Flags().Changed("keep-serving") {
				file, ok := command.OutOrStdout().(*os.File)
				flags.keepServing = ok && term.IsTerminal(file) && !flags.json
			}
			return flags.run(command, args[0])
		},
	}
	servecmd.AddFlags(command, &flags.server)
	workercmd.AddFlags(command, &flags.worker)
	command.Flags().BoolVar(&flags.keepServing, "keep-serving", false, "keep the web page open until Ctrl-C (default on a terminal)")
	command.Flags().BoolVar(&flags.json, "json", false, "print only the result, as JSON")
	command.Flags().BoolVar(&flags.verbose, "verbose", false, "log every request and report")
	return command
}

// local is a server in this process and what talks to it.
type local struct {
	server *servecmd.Process
	client *rest.Client
	tokens []auth.Token
	secret string
	// stop ends the server, and ended holds how it ended.
	stop  context.CancelFunc
	ended chan error
}

func (f *runFlags) run(command *cobra.Command, path string) (err error) {
	ctx, out := command.Context(), command.OutOrStdout()
	def, err := studycmd.ReadFile(ctx, path, command.InOrStdin())
	if err != nil {
		return err
	}
	if def, err = studycmd.InFolderOf(path, def); err != nil {
		return err
	}
	if len(def.Command) == 0 {
		return term.Misuse("%s has no command to run: give one, or drive the study from Python with ask and tell", path)
	}
	if missing := studycmd.MissingFile(def); missing != "" {
		return term.Misuse("%s: %s", path, missing)
	}
	f.server.Logger = term.NewLogger(command.ErrOrStderr(), slog.LevelWarn)
	if f.verbose {
		f.server.Logger = term.NewLogger(command.ErrOrStderr(), slog.LevelDebug)
	}
	here, err := f.open(ctx, command)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, here.close()) }()
	notes := out
	if f.json {
		notes = io.Discard
	}
	view, err := f.study(ctx, here.client, def, notes)
	if err != nil {
		return err
	}
	page := fmt.Sprintf("%s/studies/%s#token=%s", here.server.URL(), view.ID, here.secret)
	fmt.Fprintf(notes, "Web page: %s\n", page)
	if view, err = f.work(ctx, here, view, notes); err != nil {
		return err
	}
	if err := show.PrintResult(ctx, here.client, view, f.json, out); err != nil {
		return err
	}
	fmt.Fprintf(notes, "\nThe results are in %s.\n", f.server.Data)
	if !f.keepServing {
		where := strings.TrimPrefix(here.server.URL(), "http://")
		fmt.Fprintf(notes, "Web page: %s/studies/%s, while a server runs: %s serve --data %s --listen %s\n", here.server.URL(), view.ID, os.Args[0], f.server.Data, where)
		return nil
	}
	fmt.Fprintf(notes, "Web page: %s\n", page)
	fmt.Fprintln(notes, "It stays open until Ctrl-C.")
	select {
	case <-ctx.Done():
		return nil
	case err := <-here.ended:
		here.ended <- nil
		return err
	}
}

// open starts the server on the data folder.
func (f *runFlags) open(ctx context.Context, command *cobra.Command) (*local, error) {
	f.server.Elsewhere = !command.Flags().Changed("listen") // another Tandem may be there
	opened, err := servecmd.Open(ctx, f.server)
	if problem.Is(err, problem.Conflict) {
		return nil, fmt.Errorf("%w\nGive the study to that server: tandem study create FILE --watch; or run it in another --data folder", err)
	}
	if err != nil {
		return nil, err
	}
	serving, stop := context.WithCancel(context.WithoutCancel(ctx))
	here := &local{server: opened, stop: stop, ended: make(chan error, 1)}
	if here.client, here.secret, err = here.access(ctx, auth.Admin); err != nil {
		stop()
		return nil, errors.Join(err, opened.Close(ctx))
	}
	go func() { here.ended <- opened.Serve(serving) }()
	return here, nil
}

// access makes a token of the scope and a client that shows it.
func (l *local) access(ctx context.Context, scope auth.Scope) (*rest.Client, string, error) {
	secret, token, err := l.server.IssueRunToken(ctx, scope)
	if err != nil {
		return nil, "", err
	}
	l.tokens = append(l.tokens, token)
	client, err := rest.New(rest.Options{URL: l.server.URL(), Token: secret, UserAgent: "tandem/" + term.Version()})
	return client, secret, err
}

// close takes the run's tokens back and ends the server.
func (l *local) close() error {
	ctx, cancel := context.WithTimeout(context.Background(), servecmd.DrainTime)
	defer cancel()
	var err error
	for _, token := range l.tokens {
		err = errors.Join(err, l.server.RevokeRunToken(ctx, token))
	}
	l.stop()
	return errors.Join(err, <-l.ended)
}

// work runs a worker for the study until the study is over.
func (f *runFlags) work(ctx context.Context, here *local, view protocol.StudyView, out io.Writer) (protocol.StudyView, error) {
	client, _, err := here.access(ctx, auth.Worker)
	if err != nil {
		return view, err
	}
	options := f.worker
	options.Study, options.Name, options.Protected = view.ID, term.HostName(), []string{f.server.Data}
	if view.Definition.Sandbox == protocol.StrictSandbox {
		options.Sandbox = workercmd.SandboxMode(sandbox.Strict) // says at once what is missing for it
	}
	made, err := options.Agent(ctx, client, f.server.Logger)
	if err != nil {
		return view, err
	}
	done, err := options.OpenMeter(&made)
	if err != nil {
		return view, err
	}
	defer done()
	worker, err := agent.New(made)
	if err != nil {
		return view, err
	}
	if options.Slots == 0 {
		fmt.Fprint(out, "As many trials at once as this machine has room for\n\n")
	} else {
		fmt.Fprintf(out, "%s at once on this machine\n\n", format.Count(int(options.Slots), "trial"))
	}
	ctx, fail := context.WithCancelCause(ctx)
	defer fail(nil)
	drained := make(chan struct{})
	go func() {
		defer close(drained)
		if err := worker.Run(ctx); err != nil {
			fail(err)
		}
	}()
	go func() {
		select {
		case err := <-here.ended: // the server failed; close reads it again
			here.ended <- err
			fail(err)
		case <-ctx.Done():
		}
	}()
	last, err := show.Watch(ctx, here.client, view.ID, out)
	if err == nil {
		worker.Measured()
	}
	if cause := context.Cause(ctx); err != nil && cause != nil && !errors.Is(cause, context.Canceled) {
		err = cause
	}
	fail(context.Canceled)
	<-drained
	if errors.Is(err, context.Canceled) {
		fmt.Fprintln(out, "Interrupted. The same command goes on where this one was.")
	}
	return last, err
}

// study finds the unfinished study of an earlier run, or creates a new one.
func (f *runFlags) study(ctx context.Context, client *rest.Client, def definition.Definition, out io.Writer) (protocol.StudyView, error) {
	wanted, kept := def.Name, ""
	for number := 2; ; number++ {
		found, err := client.Study(ctx, def.Name)
		switch {
		case problem.Is(err, problem.NotFound):
			view, err := studycmd.Create(ctx, client, def)
			if err == nil {
				describe(out, kept, view)
			} else if strings.Contains(err.Error(), "tandem edge agent") {
				err = fmt.Errorf("%w\nBoards ask a server that goes on running: tandem serve, a worker, and tandem study create FILE", err)
			}
			return view, err
		case err != nil:
			return found, err
		}
		differ := differing(found, def)
		if !found.Status.Over() && len(differ) == 0 {
			fmt.Fprintf(out, "Study %s goes on where it was: %s\n", format.Plain(found.Name), format.States(found.Progress.Trials, found.Progress.Retried))
			if found.Status == protocol.StudyPaused {
				return client.ResumeStudy(ctx, found.ID)
			}
			return found, nil
		}
		switch {
		case number > 2: // why the first is kept says enough
		case found.Status.Over():
			line := cmp.Or(found.MoreTrials(def.Stop.Trials), "tandem study extend")
			kept = fmt.Sprintf(" (there is a study %s already, which is %s: '%s' gives one that is over more trials)", format.Plain(wanted), found.Status, line)
		default:
			kept = fmt.Sprintf(" (there is a study %s already, which differs in %s%s)", format.Plain(wanted), strings.Join(differ, ", "), f.instead(found, def, differ))
		}
		def.Name = fmt.Sprintf("%s-%d", wanted, number)
	}
}

// instead says how the study that was found gets what the file has; empty where that is more
// than trials, a priority and a parallel.
func (f *runFlags) instead(found protocol.StudyView, file definition.Definition, differ []string) string {
	var lines []string
	for _, name := range differ {
		trials := found.MoreTrials(file.Stop.Trials)
		switch stop := file.Stop; {
		case name == "priority":
			lines = append(lines, fmt.Sprintf("tandem study set %s --priority %d", found.Name, file.Priority))
		case name == "parallel":
			lines = append(lines, fmt.Sprintf("tandem study set %s --parallel %d", found.Name, file.Parallel))
		case name == "stop" && trials != "":
			if stop.Trials = found.Definition.Stop.Trials; stop != found.Definition.Stop {
				return ""
			}
			lines = append(lines, trials)
		default:
			return ""
		}
	}
	return fmt.Sprintf(": '%s' makes it the same, while 'tandem serve --data %s' runs", strings.Join(lines, "', '"), f.server.Data)
}

func describe(out io.Writer, kept string, view protocol.StudyView) {
	name := format.Plain(view.Name) + kept
	top := view.Rungs[len(view.Rungs)-1].Budget
	fmt.Fprintf(out, "Study %s: %s, promotion: %s, %s up to %s, seed %d\n", name, view.Definition.Search.Method, view.Definition.Search.Promotion.OrDefault(),
		format.Count(len(view.Rungs), "rung"), format.Budget(top), view.Definition.Search.Seed)
}

func fieldsOf(def definition.Definition) (fields map[string]json.RawMessage, err error) {
	text, err := json.Marshal(def)
	if err == nil {
		err = json.Unmarshal(text, &fields)
	}
	return fields, err
}

// differing names the fields in which a stored study is not what the file says. A seed that
// the file leaves open was drawn by the server; what was extended or set is not the file's.
func differing(found protocol.StudyView, file definition.Definition) (names []string) {
	stored := found.Definition
	if found.Extended {
		file.Stop = stored.Stop
	}
	if found.Set.Priority != nil {
		file.Priority = stored.Priority
	}
	if found.Set.Parallel != nil {
		file.Parallel = stored.Parallel
	}
	file.Search.Seed = cmp.Or(file.Search.Seed, stored.Search.Seed)
	stored.Search.Promotion = stored.Search.Promotion.OrDefault()
	file.Name = stored.Name
	a, errA := fieldsOf(stored)
	b, errB := fieldsOf(file)
	if errA != nil || errB != nil {
		return []string{"a field that cannot be read"}
	}
	both := maps.Clone(a)
	maps.Copy(both, b)
	for _, name := range slices.Sorted(maps.Keys(both)) {
		switch {
		case string(a[name]) == string(b[name]):
		case name == "code":
			names = append(names, "code: the script, or a file beside it, has changed")
		default:
			names = append(names, name)
		}
	}
	return names
}
