// Package workercmd is "tandem worker": it runs trials on this machine.
package workercmd

import (
	"context"
	"crypto/rand"
	"errors"
	"fmt"
	"log/slog"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/tandem-tune/tandem/clients/rest"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/edgecmd"
	"github.com/tandem-tune/tandem/cmd/tandem/internal/term"
	"github.com/tandem-tune/tandem/inference_emu/onnxruntime"
	"github.com/tandem-tune/tandem/internal/problem"
	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/study/selector"
	"github.com/tandem-tune/tandem/workers/agent"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/leave"
	"github.com/tandem-tune/tandem/workers/agent/probe"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/retry"
	"github.com/tandem-tune/tandem/workers/sandbox"
)

var _ agent.Server = (*rest.Client)(nil)

// Options are the flags that make a worker.
type Options struct {
	// Name is what people see the worker as; empty: this machine's name.
	Name string
	// Slots is how many trials run at once.
	Slots SlotCount
	// Study is the only study that it works for; empty: all.
	Study            string
	directory        string
	scratch          string
	path             []string
	pass             []string
	drain            time.Duration
	wattsPerCore     float64 // of a busy core
	idleWattsPerCore float64 // of a core at rest
	meter            string
	sprint           knob.Budget
	probe            probe.Mode
	noProfile        bool
	noModels         bool
	library          string
	// Sandbox is how commands are held.
	Sandbox     SandboxMode
	read, write []string
	// Protected are files and folders that no command may read.
	Protected   []string
	commands    []string
	directories []string
	datasets    []string
	secrets     []string
	labels      map[string]string
	taints      []string
	identity    string
	recipients  []string
	inside      confidential
	leave       leave.Rules
	endAt       string
}

// about is what "tandem worker --help" says first.
const about = `Run trials on this machine: pull them from the server, start their commands,
report every epoch, keep checkpoints, and give the trials back on Ctrl-C.

Commands start without a shell, in a process group of their own, with a clean
environment, in the study's directory (relative to --directory), and in a
sandbox: they read the system's programs and libraries, the study's folder and
what --allow-read names, write to folders of their own, and see nothing of the
worker and of each other. "tandem doctor" tells which layers of it this machine
has; docs/sandbox.md tells what each does.

A worker that an engine such as Slurm started leaves by itself with --idle and
--end-at. It then ends with 0; with 3 if the server refuses its token, 4 if this
machine is not what was promised (its GPUs, a PATH, --directory), and 5 if trials
fail here for the machine's sake. SIGUSR1 stops it as SIGTERM does. The file that
TANDEM_LEAVE_REASON names, Slurm or Kubernetes says why in the history of its trials.`

// Command is "tandem worker".
func Command() *cobra.Command {
	var server term.Connection
	options := Options{probe: probe.Once}
	var log term.Logging
	command := &cobra.Command{
		Use:   "worker",
		Short: "Run trials on this machine",
		Long:  about,
		Example: `  TANDEM_TOKEN=... tandem worker --server http://127.0.0.1:7171
  TANDEM_TOKEN=... tandem worker --slots 2 --directory ~/project --path ~/project/.venv/bin
  TANDEM_TOKEN=... tandem worker --allow-read /data/imagenet --allow-write ~/.cache/huggingface
  TANDEM_TOKEN=... tandem worker --pass-env HF_HOME --pass-env 'CUDA_*'
  TANDEM_TOKEN=... tandem worker --identity workers.key
  TANDEM_TOKEN=... tandem worker --confidential auto --broker https://keys.example.org:7172 --broker-token broker.token --policy 9f2c...`,
		Args: term.Arguments(0, "no arguments"),
		RunE: func(command *cobra.Command, _ []string) error {
			client, err := server.OpenWithToken("a worker takes a token")
			if err != nil {
				return err
			}
			if server.TokenFile != "" {
				options.Protected = append(options.Protected, server.TokenFile)
				if server.Enrols() {
					options.Protected[0] = filepath.Dir(server.TokenFile) // others wait there
				}
			}
			logger, err := log.Logger(command.ErrOrStderr())
			if err != nil {
				return err
			}
			made, err := options.Agent(command.Context(), client, logger)
			if err != nil {
				return err
			}
			made.Sole = sole(&server, options.Name)
			done, err := options.OpenMeter(&made)
			if err != nil {
				return err
			}
			defer done()
			if made.Server, err = enrolled(command.Context(), &server, client, logger); err != nil {
				return err
			}
			return run(command.Context(), made)
		},
	}
	term.AddConnectionFlags(command, &server)
	AddFlags(command, &options)
	command.Flags().Var(&options.probe, "probe", "run the probing tasks, which tell the server what this machine is good for (docs/probing.md): once (a machine like this), never, or always when the worker starts")
	command.Flags().StringVar(&options.Name, "name", "", "what people see the worker as (default this machine's host name); no two of a name may share a scratch folder")
	command.Flags().StringVar(&options.Study, "study", "", "work for this study only, and end with it")
	command.Flags().StringVar(&options.directory, "directory", ".", "folder that the studies' directories are relative to")
	addInside(command, &options)
	command.Flags().StringToStringVar(&options.labels, "label", nil, "NAME=VALUE that studies may ask for with resources.labels, such as zone=a (repeatable)")
	command.Flags().StringSliceVar(&options.taints, "taint", nil, "word that keeps trials away unless resources.tolerates has it, such as spot (repeatable)")
	command.Flags().StringVar(&options.leave.Launch, "launch", "", "id of the order that a launcher started it for")
	term.AddLogFlags(command, &log)
	command.AddCommand(workerDrainCommand(&server), workerUndrainCommand(&server))
	return command
}

// enrolled is a client with the worker's own token, where a launcher left an enrolment
// for it, which is used up then.
func enrolled(ctx context.Context, server *term.Connection, client *rest.Client, logger *slog.Logger) (*rest.Client, error) {
	if !server.Enrols() {
		return client, nil
	}
	nonce := rand.Text()
	stalled := func(err error) {
		logger.Warn("the server does not answer; waiting for it", "error", err)
	}
	err := retry.Do(ctx, retry.CallPatience, stalled, func(ctx context.Context) error {
		made, err := client.ExchangeEnrolment(ctx, nonce)
		server.Token = made.Token
		return err
	})
	if err != nil {
		return nil, refused(err)
	}
	if server.TokenFile != "" {
		if err := os.Remove(server.TokenFile); err != nil {
			logger.Info("the enrolment stays, and cannot be used again", "error", err)
		}
		server.TokenFile = ""
	}
	return server.Open()
}

// refused gives an error of the server about the worker's token its exit.
func refused(err error) error {
	if problem.Is(err, problem.Unauthorized) || problem.Is(err, problem.Forbidden) {
		return term.WithCode(3, err)
	}
	return err
}

func run(ctx context.Context, made agent.Options) error {
	worker, err := agent.New(made)
	if err != nil {
		return err
	}
	ctx, stop := signal.NotifyContext(ctx, syscall.SIGUSR1)
	defer stop()
	err = worker.Run(ctx)
	switch {
	case errors.As(err, new(leave.Unfit)):
		return term.WithCode(4, err)
	case errors.As(err, new(leave.Useless)):
		return term.WithCode(5, err)
	}
	return refused(err)
}

// leaving are the rules by which the worker leaves.
func (o Options) leaving() (leave.Rules, error) {
	rules := leave.FromEngine(o.leave, os.Getenv)
	if rules.Idle < 0 {
		return rules, term.Misuse("--idle (%v) must not be negative", rules.Idle)
	}
	if o.endAt != "" {
		span, err := time.ParseDuration(o.endAt)
		if rules.EndAt = time.Now().Add(span); err != nil {
			rules.EndAt, err = time.Parse(time.RFC3339, o.endAt)
		}
		if err != nil || !rules.EndAt.After(time.Now()) {
			return rules, term.Misuse("--end-at (%s) must lie ahead: a time such as 2026-12-01T18:00:00Z, or a span such as 4h", o.endAt)
		}
	}
	if rules.Launch == "" {
		return rules, nil
	}
	if os.Getenv("PATH") == "" && len(o.path) == 0 {
		return rules, term.WithCode(4, leave.Unfit("PATH is empty, so no trial's command would be found: set it in the job's script"))
	}
	if _, err := os.Stat(o.directory); err != nil {
		return rules, term.WithCode(4, leave.Unfit(fmt.Sprintf("the studies' folder cannot be entered here: %v", err)))
	}
	return rules, nil
}

// addInside adds the flags of workers on machines that are not theirs.
func addInside(command *cobra.Command, options *Options) {
	command.Flags().DurationVar(&options.leave.Idle, "idle", 0, "leave after so long without a trial (default: stay)")
	command.Flags().StringVar(&options.endAt, "end-at", "", "when the machine is taken away, such as 2026-12-01T18:00:00Z, or in how long, such as 4h: trials are handed back by checkpoint before")
	options.inside.add(command)
}

// AddFlags adds the flags of every command that runs a worker.
func AddFlags(command *cobra.Command, options *Options) {
	flags := command.Flags()
	flags.Var(&options.Slots, "slots", "how many trials run at once; auto: as many as their system configurations leave cores and memory for")
	flags.StringSliceVar(&options.path, "path", nil, "folder to search for programs first, such as a .venv/bin (repeatable; default: the Python environment that tandem was installed into)")
	flags.StringSliceVar(&options.pass, "pass-env", nil, "variable of this environment that commands get; a trailing * matches the rest (repeatable)")
	flags.DurationVar(&options.drain, "drain", 20*time.Second, "how long commands have to checkpoint after Ctrl-C")
	flags.StringVar(&options.scratch, "scratch", "", "folder for checkpoints in use (default: the user's state folder)")
	flags.Float64Var(&options.wattsPerCore, "watts-per-core", 0, "power of a busy core, for energy estimates where there is no meter (default: of the processor where it is known, else 10)")
	flags.Float64Var(&options.idleWattsPerCore, "idle-watts-per-core", 0, "power of a core at rest, for energy estimates where there is no meter (default: of the processor where it is known, else 1)")
	edgecmd.AddMeterFlag(command, &options.meter)
	flags.Float64Var(&options.sprint.Joules, "sprint-joules", 0, "energy that trials whose studies want it may take to sprint, in one go (default 0: none sprints)")
	flags.Float64Var(&options.sprint.Watts, "sprint-watts", 0, "what that account is replenished by")
	flags.Float64Var(&options.sprint.ExtraWatts, "sprint-extra-watts", 0, "what the machine takes more while a trial sprints, your estimate: what the account is charged")
	flags.BoolVar(&options.noProfile, "no-profile", false, "do not count what trials do to the machine (docs/profiling.md)")
	flags.BoolVar(&options.noModels, "no-models", false, "do not look at the models that scripts save (docs/edge.md)")
	flags.StringVar(&options.library, "onnxruntime", "", "ONNX Runtime's shared library, or the folder it is in, to run models of trials (default: $"+onnxruntime.Variable+", else looked for)")
	options.Sandbox = SandboxMode(sandbox.Auto)
	flags.Var(&options.Sandbox, "sandbox", "how commands are held: auto (all layers there are), strict (none runs unless all layers are there, and without a network), off")
	flags.StringSliceVar(&options.read, "allow-read", nil, "file or folder that commands may read, beside the study's folder (repeatable)")
	flags.StringArrayVar(&options.commands, "allow-command", nil, "command line that studies may run, as patterns word by word, such as 'python train.py **'; ** at the end for any arguments (repeatable; default: all)")
	flags.StringSliceVar(&options.directories, "allow-directory", nil, "folder in which studies may run (repeatable; default: all)")
	flags.StringSliceVar(&options.datasets, "allow-dataset", nil, "SHA-256 of an encrypted data set that studies may use, as 'tandem dataset publish' prints it (repeatable; default: all that a holder of the key made)")
	flags.StringSliceVar(&options.secrets, "secret", nil, "NAME=FILE, or NAME of a variable of this environment: a secret that studies may ask for by name (repeatable)")
	flags.StringVar(&options.identity, "identity", "", "file of the key that studies' checkpoints are encrypted with; such a worker runs encrypted studies only (docs/encryption.md)")
	flags.StringSliceVar(&options.recipients, "recipient", nil, "public key whose holder may read checkpoints besides (repeatable)")
	flags.StringSliceVar(&options.write, "allow-write", nil, "file or folder that commands may read and write (repeatable)")
}

// Agent is what the flags say, for the agent.
func (o Options) Agent(ctx context.Context, client *rest.Client, logger *slog.Logger) (agent.Options, error) {
	secrets, err := process.ReadSecrets(o.secrets)
	if err != nil {
		return agent.Options{}, term.Misuse("%w", err)
	}
	if wrong := selector.Wrong(o.labels); wrong != "" {
		return agent.Options{}, term.Misuse("--label %s", wrong)
	}
	if wrong := selector.WrongTaints(o.taints); wrong != "" {
		return agent.Options{}, term.Misuse("--taint %s", wrong)
	}
	rules, err := o.leaving()
	if err != nil {
		return agent.Options{}, err
	}
	for _, one := range o.secrets {
		if _, file, has := strings.Cut(one, "="); has {
			o.Protected = append(o.Protected, file)
		}
	}
	trusted := o.recipients
	if o.inside.mode == "auto" {
		trusted = nil // the broker's key will trust them
	}
	keys, err := sealed.Read(o.identity, trusted)
	if err != nil {
		return agent.Options{}, term.Misuse("%w", err)
	}
	if keys != nil {
		o.Protected = append(o.Protected, o.identity)
	}
	if len(o.path) == 0 {
		o.path = ownEnvironment()
	}
	made := agent.Options{
		Server: client, Name: o.Name, Labels: o.labels, Taints: o.taints, Leave: rules, Slots: int(o.Slots), Elastic: o.Slots == 0, Study: o.Study, Directory: o.directory, Scratch: o.scratch,
		Path: o.path, PassEnvironment: o.pass, DrainGrace: o.drain, WattsPerCore: o.wattsPerCore, IdleWattsPerCore: o.idleWattsPerCore, Probe: o.probe, Sprint: o.sprint, NoProfile: o.noProfile, Logger: logger,
		Policy: process.Policy{Commands: o.commands, Directories: o.directories, Datasets: o.datasets}, Secrets: secrets, Keys: keys,
		Sandbox: sandbox.Options{Mode: sandbox.Mode(o.Sandbox), Read: o.read, Write: o.write, Protected: o.Protected},
	}
	if !o.noModels {
		made.Models = &models{library: onnxruntime.Options{Named: o.library}, wattsPerCore: o.wattsPerCore}
	}
	return made, o.inside.open(ctx, &made, &o, logger)
}

// sole is the name of which no other worker may share the scratch folder; empty where an
// engine may start several of a name on a machine.
func sole(server *term.Connection, name string) string {
	if server.Enrols() {
		return ""
	}
	return name
}

// ownEnvironment is the folder of programs of the Python environment that holds this
// program, if one does: its Python has the client, whether it is activated or not.
func ownEnvironment() []string {
	program, err := os.Executable()
	if err != nil {
		return nil
	}
	folder := filepath.Dir(program)
	for _, needed := range []string{filepath.Join(filepath.Dir(folder), "pyvenv.cfg"), filepath.Join(folder, "python3")} {
		if _, err := os.Stat(needed); err != nil {
			return nil
		}
	}
	return []string{folder}
}
