// Package launchcmd is "tandem launch": it starts workers on a cluster's engine as
// studies want them.
package launchcmd

import (
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

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/internal/format"
	"github.com/tandem-tune/tandem/workers/launcher"
	"github.com/tandem-tune/tandem/workers/launcher/slurm"
)

// flags are those of every engine.
type flags struct {
	server                     term.Connection
	shapes, name, binary, logs string
	workerToken                string
	dryRun, once               bool
	every, idle                time.Duration
}

// Command is "tandem launch".
func Command() *cobra.Command {
	command := term.Group(&cobra.Command{
		Use:   "launch",
		Short: "Start workers on a cluster as studies want them",
		Long: `Start workers on a cluster as studies want them, and take back what is not wanted
any more. A worker takes trial after trial and leaves by itself when it has none.`,
	})
	command.AddCommand(slurmCommand(), doctorCommand())
	return command
}

func slurmCommand() *cobra.Command {
	var f flags
	command := &cobra.Command{
		Use:   "slurm [-- WORKER FLAGS]",
		Short: "Start workers as jobs of Slurm",
		Long: `Start workers as jobs of Slurm while studies have trials that wait. Run it where you
use sbatch, as yourself, and leave it running. Flags after -- go to each worker.

The token is a file in a folder that only you can read, on a disk that all nodes
have; jobs get its path. Make one with 'tandem token create --scope user'. Kinds of
workers, their bounds and options of sbatch are in the file of --shapes
(docs/slurm.md). Without it a worker has 4 cores, or 1, 2, 4 or 8 GPUs, whichever
is the least that a study asks for; at most 8 of each kind run at once.`,
		Example: `  tandem launch slurm --server https://tandem.example:7171 --token-file ~/.tandem/token
  tandem launch slurm --token-file ~/.tandem/token --shapes shapes.yaml -- --path ~/project/.venv/bin`,
		Args: cobra.ArbitraryArgs,
		RunE: func(command *cobra.Command, args []string) error {
			if len(args) > 0 && command.ArgsLenAtDash() != 0 {
				return term.Misuse("%q is not known: flags of the workers go after --", args[0])
			}
			return f.slurm(command, args)
		},
	}
	term.AddConnectionFlags(command, &f.server)
	own := command.Flags()
	own.StringVar(&f.shapes, "shapes", "", "YAML file with the kinds of workers")
	own.StringVar(&f.workerToken, "worker-token-file", "", "file with the token of the workers (default: --token-file)")
	own.StringVar(&f.name, "name", "tandem", "first part of the jobs' names: another one for each server")
	own.StringVar(&f.binary, "binary", "", "this program's path on the nodes (default: as here)")
	own.StringVar(&f.logs, "logs", "", "folder for the jobs' output, on a disk that all nodes have (default: ~/.tandem/jobs)")
	own.BoolVar(&f.dryRun, "dry-run", false, "say once what would be done, and do nothing")
	own.BoolVar(&f.once, "once", false, "act once, for cron")
	own.DurationVar(&f.every, "every", 10*time.Second, "how often to look: 1s at least")
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
		if err := slurm.CheckOptions(shape.Options); err != nil {
			return nil, term.Misuse("%s: shape %s: %w", f.shapes, shape.Name, err)
		}
	}
	return sorted, nil
}

// slurm checks all that can be wrong, and works until it is told to end.
func (f *flags) slurm(command *cobra.Command, extra []string) error {
	if f.every < time.Second || f.idle < time.Second || strings.ContainsAny(f.name, ". |\n") || f.name == "" {
		return term.Misuse("--every (%v) and --idle (%v) must be at least 1s, and --name (%q) a word without a dot", f.every, f.idle, f.name)
	}
	shapes, err := f.readShapes()
	if err != nil {
		return err
	}
	ctx := command.Context()
	client, err := f.server.OpenWithToken("a launcher takes a token")
	if err != nil {
		return err
	}
	worker, err := f.worker(ctx, client)
	if err != nil {
		return err
	}
	engine, err := f.engine(append(worker, extra...))
	if err != nil {
		return err
	}
	l := &loop{
		client: client, engine: engine, dryRun: f.dryRun, out: command.OutOrStdout(), said: map[string]string{},
		planner: &launcher.Planner{Shapes: shapes, Idle: f.idle},
	}
	if f.dryRun || f.once {
		return l.tick(ctx)
	}
	return l.run(ctx, f.every)
}

// worker is the command line of the workers.
func (f *flags) worker(ctx context.Context, client *rest.Client) ([]string, error) {
	token := f.workerToken
	if token == "" {
		token = f.server.TokenFile
		if who, err := client.Identity(ctx); err != nil {
			return nil, err
		} else if who.Scope == "admin" || who.Scope == "viewer" {
			return nil, term.Misuse("a token with the scope %s is not given to workers: name theirs with --worker-token-file; 'tandem token create --scope worker --worker \"*\"' makes one", who.Scope)
		}
	}
	if token == "" {
		return nil, term.Misuse("the token must be in a file, as jobs get its path: name it with --token-file")
	}
	token, err := filepath.Abs(token)
	if err != nil {
		return nil, err
	}
	if err := slurm.CheckTokenFile(token); err != nil {
		return nil, err
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
	worker := slices.Concat([]string{f.binary, "worker"}, f.server.Arguments(), []string{"--token-file", token, "--directory", here, "--idle", f.idle.String()})
	return worker, nil
}

func (f *flags) engine(worker []string) (*slurm.Engine, error) {
	home, err := os.UserHomeDir()
	if err != nil {
		return nil, err
	}
	if f.logs == "" {
		f.logs = filepath.Join(home, ".tandem", "jobs")
	}
	if f.logs, err = filepath.Abs(f.logs); err != nil {
		return nil, err
	}
	if err := os.MkdirAll(f.logs, 0o700); err != nil {
		return nil, err
	}
	return slurm.New(slurm.Options{Name: f.name, Logs: f.logs, Worker: worker, Home: home, Path: os.Getenv("PATH")})
}

func doctorCommand() *cobra.Command {
	var asJSON bool
	var f flags
	command := &cobra.Command{
		Use:     "doctor slurm",
		Short:   "Say what a cluster has for workers, and what it lacks",
		Example: `  tandem launch doctor slurm`,
		Args:    term.Arguments(1, "the engine: slurm"),
		RunE: func(command *cobra.Command, args []string) error {
			if args[0] != "slurm" {
				return term.Misuse("the engine %q is not known: slurm is", args[0])
			}
			f.name = "tandem"
			engine, err := slurm.New(slurm.Options{Name: f.name})
			if err != nil {
				return err
			}
			return term.PrintAnswer(command.OutOrStdout(), asJSON, engine.Doctor(command.Context()), printFindings)
		},
	}
	command.Flags().BoolVar(&asJSON, "json", false, "print JSON for scripts")
	return command
}

func printFindings(out io.Writer, found []slurm.Finding) error {
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
