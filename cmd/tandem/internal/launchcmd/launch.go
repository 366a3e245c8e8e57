// Package launchcmd is "tandem launch": it starts workers on a cluster's engine as
// studies want them.
package launchcmd

import (
	"cmp"
	"context"
	"fmt"
	"io"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"time"

	"github.com/goccy/go-yaml"
	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/command"
	"github.com/tandem-tune/tandem/workers/launcher/engine"
	"github.com/tandem-tune/tandem/workers/launcher/kubernetes"
	"github.com/tandem-tune/tandem/workers/launcher/loop"
	"github.com/tandem-tune/tandem/workers/launcher/slurm"
)

// flags are those of every engine.
type flags struct {
	server                     term.Connection
	shapes, name, binary, logs string
	workerToken, commands      string
	identity                   string
	dryRun, once               bool
	every, idle                time.Duration
	// pods are where workers are pods: they see nothing of this machine then.
	pods *kubernetes.Pods
	// check refuses options that a shape cannot have on this engine.
	check func(options []string) error
	// open makes the engine.
	open func(engine.Options) (launcher.Engine, error)
}

// Command is "tandem launch".
func Command() *cobra.Command {
	command := term.Group(&cobra.Command{
		Use:   "launch",
		Short: "Start workers on a cluster as studies want them",
		Long: `Start workers on a cluster as studies want them, and take back what is not wanted
any more. A worker takes trial after trial and leaves by itself when it has none.`,
	})
	command.AddCommand(slurmCommand(), kubernetesCommand(), commandCommand(), doctorCommand())
	return command
}

func slurmCommand() *cobra.Command {
	f := flags{check: slurm.CheckOptions, open: openSlurm}
	return f.flagged(&cobra.Command{
		Use:   "slurm [-- WORKER FLAGS]",
		Short: "Start workers as jobs of Slurm",
		Long: `Start workers as jobs of Slurm while studies have trials that wait. Run it where you
use sbatch, as yourself, and leave it running. Flags after -- go to each worker.

Make the token with 'tandem token create --scope launcher --name USER'. No job gets
it: each gets the path of one of its own, which works once. Those files are in the
folder of --logs, on a disk that all nodes have. Kinds of workers, their bounds and
options of sbatch are in the file of --shapes (docs/slurm.md). Without it a worker
has 4 cores, or 1, 2, 4 or 8 GPUs, whichever is the least that a study asks for; at
most 8 of each kind run at once.`,
		Example: `  tandem launch slurm --server https://tandem.example:7171 --token-file ~/.tandem/token
  tandem launch slurm --token-file ~/.tandem/token --shapes shapes.yaml -- --path ~/project/.venv/bin`,
	})
}

func kubernetesCommand() *cobra.Command {
	f := flags{pods: &kubernetes.Pods{}}
	f.open = f.openKubernetes
	f.check = func(options []string) error {
		_, err := f.pods.With(options)
		return err
	}
	command := f.flagged(&cobra.Command{
		Use:   "kubernetes --image IMAGE [-- WORKER FLAGS]",
		Short: "Start workers as pods of Kubernetes",
		Long: `Start workers as pods of Kubernetes while studies have trials that wait. Run it in
the cluster, or where kubectl reaches it, and leave it running. Flags after -- go to
each worker.

Each pod is one worker: it takes trial after trial, and ends when it has none. Its
token, which works once, is a Secret that the pod owns. Kinds of workers and their
bounds are in the file of --shapes; their options are the flags from --image to
--toleration (docs/kubernetes.md).`,
		Example: `  tandem launch doctor kubernetes --namespace tuning --image registry.example/training:1
  tandem launch kubernetes --namespace tuning --queue team-a --token-file ~/.tandem/token \
    --image registry.example/training:1 --tandem-image registry.example/tandem:1`,
	})
	f.addPodFlags(command)
	return command
}

// addPodFlags adds what says which cluster, and which pods.
func (f *flags) addPodFlags(command *cobra.Command) {
	command.Flags().StringVar(&f.pods.Kubeconfig, "kubeconfig", "", "file that says how the cluster is reached (default: as kubectl, or the service account of this pod)")
	command.Flags().StringVar(&f.pods.Namespace, "namespace", "", "where the pods are (default: that of the kubeconfig, or of this pod)")
	f.pods.AddFlags(command.Flags())
}

func (f *flags) openKubernetes(options engine.Options) (launcher.Engine, error) {
	options.Home, options.Path = "", "" // the image has its own
	return kubernetes.New(options, *f.pods)
}

func commandCommand() *cobra.Command {
	f := flags{check: func([]string) error { return nil }}
	f.open = f.openCommand
	command := f.flagged(&cobra.Command{
		Use:   "command --commands FILE [-- WORKER FLAGS]",
		Short: "Start workers by commands of your own, as for PBS, LSF, HTCondor or machines that are woken",
		Long: `Start workers by commands of your own while studies have trials that wait. The file
of --commands names them, each as a list of words that is run without a shell:
submit (the job's script is its standard input), list (prints a JSON object for
each job), cancel (gets ids) and, if you like, why (gets an id, prints a sentence).
docs/launch.md has examples. All else is as with 'tandem launch slurm'.`,
		Example: `  tandem launch command --commands pbs.yaml --token-file ~/.tandem/token
  tandem launch doctor command --commands pbs.yaml`,
	})
	command.Flags().StringVar(&f.commands, "commands", "", "YAML file with the commands of the engine")
	return command
}

// flagged adds what every engine has to its command.
func (f *flags) flagged(command *cobra.Command) *cobra.Command {
	command.Args = cobra.ArbitraryArgs
	command.RunE = func(command *cobra.Command, args []string) error {
		if len(args) > 0 && command.ArgsLenAtDash() != 0 {
			return term.Misuse("%q is not known: flags of the workers go after --", args[0])
		}
		return f.launch(command, args)
	}
	term.AddConnectionFlags(command, &f.server)
	own := command.Flags()
	own.StringVar(&f.shapes, "shapes", "", "YAML file with the kinds of workers")
	if f.pods == nil {
		own.StringVar(&f.workerToken, "worker-token-file", "", "file with one token for all workers, where the nodes share no disk (default: each gets its own)")
	}
	own.StringVar(&f.identity, "identity", "", "file of the key of encrypted studies, at the same path here and where the workers run; they run no others then (docs/encryption.md)")
	own.StringVar(&f.name, "name", "tandem", "first part of the jobs' names: another one for each server")
	own.StringVar(&f.binary, "binary", "", "this program's path on the nodes (default: as here)")
	own.StringVar(&f.logs, "logs", "", "folder for the jobs' output and tokens, on a disk that all nodes have (default: ~/.tandem/jobs)")
	own.BoolVar(&f.dryRun, "dry-run", false, "say once what would be done, and do nothing")
	own.BoolVar(&f.once, "once", false, "act once, for cron")
	own.DurationVar(&f.every, "every", 10*time.Second, "how often to look at least: 1s or more; it looks at once when a study wants more")
	own.DurationVar(&f.idle, "idle", 5*time.Minute, "after how long without a trial a worker leaves")
	return command
}

// defaults are the shapes without a file.
func defaults() []launcher.Shape {
	shapes := []launcher.Shape{{Name: "cpu", Cores: 4}}
	for _, gpus := range []int{1, 2, 4, 8} {
		shapes = append(shapes, launcher.Shape{Name: fmt.Sprintf("gpu%d", gpus), GPUs: gpus, Cores: 4 * gpus})
	}
	return shapes
}

// readShapes reads the file of --shapes.
func (f *flags) readShapes() ([]launcher.Shape, error) {
	shapes := defaults()
	if f.shapes != "" {
		content, err := os.ReadFile(f.shapes)
		if err != nil {
			return nil, err
		}
		var file struct {
			Shapes []launcher.Shape `yaml:"shapes"`
		}
		if err := yaml.UnmarshalWithOptions(content, &file, yaml.Strict()); err != nil {
			return nil, term.Misuse("%s: %w", f.shapes, err)
		}
		shapes = file.Shapes
	}
	sorted, err := launcher.Sorted(shapes)
	if err != nil {
		return nil, term.Misuse("%s: %w", f.shapes, err)
	}
	for _, shape := range sorted {
		if err := f.check(shape.Options); err != nil {
			return nil, term.Misuse("%s: shape %s: %w", f.shapes, shape.Name, err)
		}
	}
	return sorted, nil
}

// launch checks all that can be wrong, and works until it is told to end.
func (f *flags) launch(command *cobra.Command, extra []string) error {
	if f.every < time.Second || f.idle < time.Second || strings.ContainsAny(f.name, ". |/\n") || f.name == "" {
		return term.Misuse("--every (%v) and --idle (%v) must be at least 1s, and --name (%q) a word without dots and slashes", f.every, f.idle, f.name)
	}
	shapes, err := f.readShapes()
	if err != nil {
		return err
	}
	keys, err := sealed.Read(f.identity, nil)
	if err != nil {
		return term.Misuse("%w", err)
	}
	for _, one := range extra {
		if name, _, _ := strings.Cut(one, "="); name == "--identity" {
			return term.Misuse("--identity is behind --: name it before, so that the launcher knows which studies its workers can run")
		}
	}
	ctx := command.Context()
	client, err := f.server.OpenWithToken("a launcher takes a token")
	if err != nil {
		return err
	}
	worker, err := f.worker()
	if err != nil {
		return err
	}
	jobs, enrolments, err := f.engine(append(worker, extra...))
	if err != nil {
		return err
	}
	l := &loop.Loop{
		Server: client, Engine: jobs, Enrolments: enrolments, DryRun: f.dryRun, Out: command.OutOrStdout(),
		Planner: &launcher.Planner{Shapes: shapes, Idle: f.idle, Keys: keys.Recipients()}, Name: f.name, Of: command.Name(),
	}
	if f.dryRun {
		return l.Tick(ctx)
	}
	if l.Kept, err = engine.OpenMemory(f.logs, f.name); err != nil {
		return err
	}
	defer l.Kept.Close() //nolint:errcheck // it was only locked
	if l.Planner.Memory, err = l.Kept.Read(); err != nil {
		return err
	}
	if f.once {
		return l.Tick(ctx)
	}
	l.Every = f.every
	return run(ctx, l)
}

// run works until the context ends. What does not answer is asked again.
func run(ctx context.Context, l *loop.Loop) error {
	l.Say("start", "looking every %v, and when a study wants more; Ctrl-C ends this and leaves the workers", l.Every)
	for ctx.Err() == nil {
		err := l.Tick(ctx)
		code := term.ExitCode(ctx, err)
		if ctx.Err() == nil && err != nil {
			l.Say("trouble", "%v; trying again", err)
			if code == term.ExitUsage && !problem.Is(err, problem.Invalid) { // a report that is refused harms no worker
				return err
			}
		} else {
			l.Forget("trouble")
		}
		l.Wait(ctx)
	}
	return nil
}

// worker is the command line of the workers.
func (f *flags) worker() (worker []string, err error) {
	if f.workerToken != "" {
		token, err := filepath.Abs(f.workerToken)
		if err != nil {
			return nil, err
		}
		if err := engine.CheckTokenFile(token); err != nil {
			return nil, err
		}
		worker = []string{"--token-file", token}
	}
	start := []string{"--idle", f.idle.String()}
	if f.identity != "" {
		identity, err := filepath.Abs(f.identity)
		if err != nil {
			return nil, err
		}
		start = append(start, "--identity", identity)
	}
	if f.pods != nil {
		return slices.Concat([]string{cmp.Or(f.binary, f.pods.Tandem()), "worker"}, f.server.Arguments(), start), nil
	}
	if f.binary == "" {
		if f.binary, err = os.Executable(); err != nil {
			return nil, err
		}
	}
	here, err := os.Getwd()
	if err != nil {
		return nil, err
	}
	return slices.Concat([]string{f.binary, "worker"}, f.server.Arguments(), worker, []string{"--directory", here}, start), nil
}

// engine opens the engine, and the folder of the tokens of what it launches.
func (f *flags) engine(worker []string) (launcher.Engine, engine.Enrolments, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, "", err
	}
	f.logs = cmp.Or(f.logs, filepath.Join(home, ".tandem", "jobs"))
	if f.logs, err = filepath.Abs(f.logs); err != nil {
		return nil, "", err
	}
	var enrolments engine.Enrolments
	if f.workerToken == "" {
		enrolments = engine.Enrolments(filepath.Join(f.logs, "enrolments-"+f.name))
		err = enrolments.Open()
	} else {
		err = os.MkdirAll(f.logs, 0o700)
	}
	if err != nil {
		return nil, "", err
	}
	opened, err := f.open(engine.Options{Name: f.name, Logs: f.logs, Worker: worker, Enrolments: enrolments, Home: home, Path: os.Getenv("PATH")})
	return opened, enrolments, err
}

func openSlurm(options engine.Options) (launcher.Engine, error) { return slurm.New(options) }

func (f *flags) openCommand(options engine.Options) (launcher.Engine, error) {
	if f.commands == "" {
		return nil, term.Misuse("--commands is missing: name the file with the commands submit, list and cancel")
	}
	content, err := os.ReadFile(f.commands)
	if err != nil {
		return nil, err
	}
	var words command.Commands
	if err := yaml.UnmarshalWithOptions(content, &words, yaml.Strict()); err != nil {
		return nil, term.Misuse("%s: %w", f.commands, err)
	}
	made, err := command.New(options, words)
	if err != nil {
		return nil, term.Misuse("%s: %w", f.commands, err)
	}
	return made, nil
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	f := flags{pods: &kubernetes.Pods{}}
	engines := map[string]func(engine.Options) (launcher.Engine, error){"slurm": openSlurm, "kubernetes": f.openKubernetes, "command": f.openCommand}
	command := &cobra.Command{
		Use:   "doctor ENGINE",
		Short: "Say what a cluster has for workers, and what it lacks",
		Example: `  tandem launch doctor slurm
  tandem launch doctor kubernetes --namespace tuning --image registry.example/training:1
  tandem launch doctor command --commands pbs.yaml`,
		Args: term.Arguments(1, "the engine: slurm, kubernetes or command"),
		RunE: func(command *cobra.Command, args []string) error {
			open, known := engines[args[0]]
			if !known {
				return term.Misuse("the engine %q is not known: slurm, kubernetes and command are", args[0])
			}
			made, err := open(engine.Options{Name: f.name})
			if err != nil {
				return err
			}
			return term.PrintAnswer(command.OutOrStdout(), asJSON, made.Doctor(command.Context()), printFindings)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	command.Flags().StringVar(&f.commands, "commands", "", "YAML file with the commands of the engine command")
	command.Flags().StringVar(&f.name, "name", "tandem", "first part of the jobs' names")
	f.addPodFlags(command)
	return command
}

func printFindings(out io.Writer, found []launcher.Finding) error {
	for _, one := range found {
		mark := "yes"
		if !one.Good {
			mark = "no "
		}
		if _, err := fmt.Fprintf(out, "%s  %-22s %s\n", mark, format.Plain(one.Name), format.Plain(one.Says)); err != nil {
			return err
		}
	}
	return nil
}
