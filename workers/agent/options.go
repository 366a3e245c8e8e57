package agent

import (
	"cmp"
	"fmt"
	"log/slog"
	"os"
	"path/filepath"
	"strings"
	"time"

	"github.com/tandem-tune/tandem/internal/sealed"
	"github.com/tandem-tune/tandem/profiler"
	"github.com/tandem-tune/tandem/profiler/proc"
	"github.com/tandem-tune/tandem/workers/agent/artifact"
	"github.com/tandem-tune/tandem/workers/agent/gpu"
	"github.com/tandem-tune/tandem/workers/agent/knob"
	"github.com/tandem-tune/tandem/workers/agent/leave"
	"github.com/tandem-tune/tandem/workers/agent/probe"
	"github.com/tandem-tune/tandem/workers/agent/process"
	"github.com/tandem-tune/tandem/workers/agent/workspace"
	"github.com/tandem-tune/tandem/workers/confidential/enclave"
	"github.com/tandem-tune/tandem/workers/sandbox"
	"github.com/tandem-tune/tandem/workers/workload"
)

// Options make an [Agent]. Only Server is required.
type Options struct {
	Server Server
	// Name is shown to people; the host's name when empty.
	Name string
	// Slots is how many trials run at once; 1 when 0, and for an elastic agent as
	// many as it has cores, at most 64.
	Slots int
	// Elastic lets the server decide how many trials run at once, up to Slots: as
	// many as their configurations leave cores for.
	Elastic bool
	// Study, by name or id, restricts the agent to one study, whose end ends
	// [Agent.Run].
	Study string
	// Directory is what a study's directory is relative to; the agent's own
	// working directory when empty.
	Directory string
	// Scratch holds sockets, checkpoints in use and the artifact cache, in
	// folders only this user can enter; the user's state directory when empty.
	Scratch string
	// Sole is a name of which no other agent may use the scratch directory; empty: any may.
	Sole string
	// Path are folders that come first on the PATH of commands, such as the bin
	// of a Python environment; relative ones are relative to the agent's own
	// working directory.
	Path []string
	// PassEnvironment names variables that commands get from the agent's own
	// environment, beside the ones they always get. A trailing * matches the
	// rest of a name. The server's token is never passed.
	PassEnvironment []string
	// DrainGrace is how long commands have between SIGTERM and SIGKILL when the
	// agent is stopped; 20 s when 0.
	DrainGrace time.Duration
	// StopGrace is how long a command has after the server's "stop" before it
	// is ended, and then after SIGTERM before it is killed, and how long one has
	// to end that hears that there is no further trial for it; 10 s when 0.
	StopGrace time.Duration
	// NextWait is how long the process of a script that can take one trial after
	// the other is kept for its next one; 10 s when 0. What waits has memory.
	NextWait time.Duration
	// MaxCheckpointBytes and MaxCheckpointFiles bound a checkpoint; 4 GiB and
	// 100,000 when 0.
	MaxCheckpointBytes int64
	MaxCheckpointFiles int
	// CachedArtifacts is how many checkpoints are kept for trials that come
	// back to this worker; 8 when 0.
	CachedArtifacts int
	// WattsPerCore is the busy core's power of energy estimates; see
	// profiler.DefaultWattsPerCore.
	WattsPerCore float64
	// Meter is a power meter of the whole machine, which replaces estimates and counters;
	// nil: none.
	Meter profiler.External
	// IdleWattsPerCore is what each core is estimated to draw at rest; see
	// profiler.DefaultIdleWattsPerCore.
	IdleWattsPerCore float64
	// WattsOrigin says where both come from; empty: from the machine's owner.
	WattsOrigin string
	// Probe says when the probing tasks run; ProbeNever when empty.
	Probe probe.Mode
	// ProbesFile keeps what they took; in the user's state directory when empty,
	// or in Scratch where there is none.
	ProbesFile string
	// NoProfile leaves profiles out of the reports.
	NoProfile bool
	// Sprint is what trials whose studies want that may take more than usual.
	Sprint knob.Budget
	// Models looks at the models that scripts save; nil: nobody does.
	Models artifact.Models
	// Policy is what studies may run here.
	Policy process.Policy
	// Secrets are what studies may ask for by name. Commands get them in their
	// environment; they are taken out of what goes to the server of a log.
	Secrets map[string]string
	// Keys encrypt and decrypt checkpoints. An agent with keys runs encrypted studies only.
	Keys *sealed.Keys
	// Enclave, in a confidential machine, gets the key of each lease from a broker. Such an
	// agent runs confidential studies only; nil: it is no such machine.
	Enclave *enclave.Enclave
	// Sandbox is how commands are held; with an empty mode they are not. Search,
	// Home and Scratch are filled in.
	Sandbox sandbox.Options
	// Root is prefixed to the paths of the kernel's settings that trials may
	// change, such as the frequency of the cores; "/" when empty.
	Root string
	// Labels are told to the server, for studies that ask for some.
	Labels map[string]string
	// Taints keep trials away whose studies do not tolerate them.
	Taints []string
	// Leave says when the agent leaves by itself, and what the engine that started it
	// says of this machine.
	Leave leave.Rules
	// Logger is told what the agent does; slog.Default when nil.
	Logger *slog.Logger

	// openGPUs opens the driver of the GPUs; tests have another.
	openGPUs func() (gpu.Control, error)
	// gpuInterval is how often they are looked at; tests look more often.
	gpuInterval time.Duration
	// tasks are run as probing tasks, and coreSeconds tells what others do
	// meanwhile; tests have others.
	tasks       []workload.Task
	coreSeconds func() (busy, all float64)
}

// rules are what commands may do and get.
func (o Options) rules() process.Rules {
	return process.Rules{Worker: o.Name, Directory: o.Directory, Path: o.Path, Pass: o.PassEnvironment, Slots: o.Slots, Elastic: o.Elastic, Policy: o.Policy, Secrets: o.Secrets, Keys: o.Keys}
}

// mostElastic bounds the trials, and so the open requests, of a large machine.
const mostElastic = 64

func (o Options) complete() (Options, error) {
	if o.Server == nil {
		return o, fmt.Errorf("an agent needs a server to work for")
	}
	if o.Name = cmp.Or(o.Name, o.Leave.Name); o.Name == "" {
		name, err := os.Hostname()
		if err != nil {
			name = "worker"
		}
		o.Name = name
	}
	o.Name = strings.ToValidUTF8(o.Name[:min(len(o.Name), 128)], "")
	if err := o.Sprint.Check(); err != nil {
		return o, err
	}
	if o.Logger == nil {
		o.Logger = slog.Default()
	}
	o.Root = cmp.Or(o.Root, "/")
	if o.openGPUs == nil {
		o.openGPUs = gpu.Open
	}
	o.gpuInterval = orElse(o.gpuInterval, gpu.Interval)
	if o.Elastic {
		o.Slots = orElse(o.Slots, min(profiler.ThisMachine().Cores, mostElastic))
	}
	o.Slots = orElse(o.Slots, 1)
	o.DrainGrace = orElse(o.DrainGrace, 20*time.Second)
	o.StopGrace = orElse(o.StopGrace, 10*time.Second)
	o.NextWait = orElse(o.NextWait, 10*time.Second)
	o.MaxCheckpointBytes = orElse(o.MaxCheckpointBytes, 4<<30)
	o.MaxCheckpointFiles = orElse(o.MaxCheckpointFiles, 100_000)
	o.CachedArtifacts = orElse(o.CachedArtifacts, 8)
	var err error
	if o.Directory, err = filepath.Abs(o.Directory); err != nil {
		return o, fmt.Errorf("the directory for studies: %w", err)
	}
	if o.Scratch == "" {
		if o.Scratch, err = workspace.StateDirectory(); err != nil {
			return o, err
		}
	}
	if o.Scratch, err = filepath.Abs(o.Scratch); err != nil {
		return o, fmt.Errorf("the scratch directory: %w", err)
	}
	if err := o.completeProbing(); err != nil {
		return o, err
	}
	if o.Policy, err = o.Policy.Complete(); err != nil {
		return o, err
	}
	o.Path, err = absolute(o.Path)
	return o, err
}

func (o *Options) completeProbing() error {
	o.Probe = cmp.Or(o.Probe, probe.Never)
	if o.tasks == nil {
		o.tasks = workload.Tasks()
	}
	if o.coreSeconds == nil {
		o.coreSeconds = proc.CoreSeconds
	}
	if err := new(probe.Mode).Set(string(o.Probe)); err != nil || o.ProbesFile != "" {
		return err
	}
	file, err := probe.DefaultFile()
	if err != nil {
		file = filepath.Join(o.Scratch, "probes.json")
	}
	o.ProbesFile = file
	return nil
}

func absolute(folders []string) ([]string, error) {
	list := make([]string, 0, len(folders))
	for _, folder := range folders {
		if folder == "" || strings.ContainsRune(folder, filepath.ListSeparator) {
			return nil, fmt.Errorf("the folder %q cannot be on the PATH: give one folder at a time, without a %q in its name", folder, filepath.ListSeparator)
		}
		folder, err := filepath.Abs(folder)
		if err != nil {
			return nil, fmt.Errorf("a folder for the PATH: %w", err)
		}
		list = append(list, folder)
	}
	return list, nil
}

func orElse[T int | int64 | time.Duration](value, otherwise T) T {
	if value <= 0 {
		return otherwise
	}
	return value
}
